execute_process(COMMAND ${NM} -D --defined-only --format=posix ${PLUGIN}
  OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
string(REGEX REPLACE " [^\n]*" "" names "${symbols}")
string(STRIP "${names}" names)
if(NOT names STREQUAL "topolet_plugin_v1")
  message(FATAL_ERROR "${PLUGIN} must export topolet_plugin_v1 and nothing else; it exports:\n${names}")
endif()
