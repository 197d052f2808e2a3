# topolet_add_plugin(NAME SOURCES…): a plugin NAME.so that exports topolet_plugin_v1 and nothing else.
# Hidden visibility alone would leak instantiations of the standard library's templates, hence the version script.
function(topolet_add_plugin name)
  set(map ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../abi/plugin.map)
  add_library(${name} MODULE ${ARGN})
  target_link_libraries(${name} PRIVATE topolet_sdk)
  set_target_properties(${name} PROPERTIES
    PREFIX "" SUFFIX ".so"
    C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
    LINK_DEPENDS ${map})
  target_link_options(${name} PRIVATE "LINKER:--version-script=${map}")
  # The sanitizers' runtime is in the executable; clang leaves its symbols undefined in shared objects.
  if(NOT TOPOLET_SANITIZE)
    target_link_options(${name} PRIVATE "LINKER:-z,defs")
  endif()
endfunction()
