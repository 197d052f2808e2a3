# topolet_add_plugin(NAME SOURCES…): a plugin NAME.so that exports topolet_plugin_v1 and nothing else.
# Hidden visibility alone would leak instantiations of the standard library's templates, hence the version script.
set(TOPOLET_PLUGIN_MAP ${CMAKE_CURRENT_LIST_DIR}/../abi/plugin.map)

function(topolet_add_plugin name)
  add_library(${name} MODULE ${ARGN})
  target_link_libraries(${name} PRIVATE topolet_sdk)
  set_target_properties(${name} PROPERTIES
    PREFIX "" SUFFIX ".so"
    C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
    LINK_DEPENDS ${TOPOLET_PLUGIN_MAP})
  target_link_options(${name} PRIVATE "LINKER:--version-script=${TOPOLET_PLUGIN_MAP}")
  # The sanitizers' runtime is in the executable; clang leaves its symbols undefined in shared objects.
  if(NOT TOPOLET_SANITIZE)
    target_link_options(${name} PRIVATE "LINKER:-z,defs")
  endif()
endfunction()
