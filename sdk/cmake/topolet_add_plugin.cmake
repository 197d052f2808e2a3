# topolet_add_plugin(NAME SOURCES…): a plugin NAME.so that exports topolet_plugin_v1 and nothing else.
# Hidden visibility alone would leak instantiations of the standard library's templates, hence the version script.
function(topolet_add_plugin name)
  set(map ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/plugin.map)
  add_library(${name} MODULE ${ARGN})
  target_link_libraries(${name} PRIVATE topolet::sdk)
  set_target_properties(${name} PROPERTIES
    PREFIX "" SUFFIX ".so"
    C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
    LINK_DEPENDS ${map})
  if(NOT CMAKE_CXX_STANDARD)
    set_target_properties(${name} PROPERTIES CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON)
  endif()
  target_link_options(${name} PRIVATE "LINKER:--version-script=${map}")
  # The sanitizers' runtime is in the executable; clang leaves its symbols undefined in shared objects.
  get_directory_property(link_options LINK_OPTIONS)
  if(NOT "${CMAKE_C_FLAGS} ${CMAKE_CXX_FLAGS} ${link_options}" MATCHES "-fsanitize=")
    target_link_options(${name} PRIVATE "LINKER:-z,defs")
  endif()
endfunction()
