# The SDK as an outsider gets it: `cmake --install BUILD --component sdk --prefix PREFIX`.
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/topolet-sdk)
set(pkgconfig_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
set(plugin_dir ${CMAKE_INSTALL_LIBDIR}/topolet/plugins)
set(sdk_doc_dir ${CMAKE_INSTALL_DATADIR}/topolet-sdk)

# 0.9.DRAFT while there are drafts, 1.MINOR.0 from then on: the header alone says what it is.
set(header ${CMAKE_CURRENT_SOURCE_DIR}/include/topolet/abi.h)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${header})
file(STRINGS ${header} lines REGEX "^#define TOPOLET_ABI_(DRAFT|MINOR) [0-9]+u$")
string(REGEX REPLACE ".*ABI_DRAFT ([0-9]+).*" "\\1" draft "${lines}")
string(REGEX REPLACE ".*ABI_MINOR ([0-9]+).*" "\\1" minor "${lines}")
if(draft GREATER 0)
  set(sdk_version 0.9.${draft})
else()
  set(sdk_version 1.${minor}.0)
endif()

include(CMakePackageConfigHelpers)
set(PLUGIN_DIR ${plugin_dir})
configure_package_config_file(${CMAKE_CURRENT_SOURCE_DIR}/cmake/topolet-sdk-config.cmake.in topolet-sdk-config.cmake
  INSTALL_DESTINATION ${package_dir} PATH_VARS PLUGIN_DIR CMAKE_INSTALL_INCLUDEDIR)
configure_file(cmake/topolet-sdk-config-version.cmake.in topolet-sdk-config-version.cmake @ONLY)
# Found by its own place, so that a prefix can be moved.
file(RELATIVE_PATH prefix_from_pc /${pkgconfig_dir} /)
string(REGEX REPLACE "/$" "" prefix_from_pc ${prefix_from_pc})
configure_file(cmake/topolet-sdk.pc.in topolet-sdk.pc @ONLY)

install(DIRECTORY include/topolet DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT sdk
  FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(FILES
  ${CMAKE_CURRENT_BINARY_DIR}/topolet-sdk-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/topolet-sdk-config-version.cmake
  cmake/topolet_add_plugin.cmake cmake/plugin.map
  DESTINATION ${package_dir} COMPONENT sdk)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/topolet-sdk.pc DESTINATION ${pkgconfig_dir} COMPONENT sdk)
# Installed, the headers are elsewhere than in the tree, and so the links lead elsewhere.
file(RELATIVE_PATH headers_from_doc /${sdk_doc_dir} /${CMAKE_INSTALL_INCLUDEDIR})
foreach(document README.md ABI.md VOTES.md)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${document})
  file(READ ${document} text)
  string(REPLACE "](include/" "](${headers_from_doc}/" text "${text}")
  file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/documents/${document} "${text}")
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/documents/${document} DESTINATION ${sdk_doc_dir} COMPONENT sdk)
endforeach()
# The script that builds both examples begins with the source tree.
install(DIRECTORY example DESTINATION ${sdk_doc_dir} COMPONENT sdk
  PATTERN example/build.sh EXCLUDE
  PATTERN build.sh PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
