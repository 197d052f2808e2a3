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

# topolet_add_plugin_tests(NAME [TEST sources…] [WORKLOAD FILE] [MACHINE DESCRIPTION] [OPTIONS flags…] [EXPECT REGEX]):
# tests of the plugin NAME for ctest.
# NAME.unit is a program with testing.hpp, NAME.check `topolet plugin check`, and NAME.simulate `topolet simulate` with the
# workload and the flags, whose output must match EXPECT if that is given; each as far as what it needs is there: hwloc,
# topolet-plugin-check, topolet.
function(topolet_add_plugin_tests name)
  cmake_parse_arguments(arg "" "WORKLOAD;MACHINE;EXPECT" "TEST;OPTIONS" ${ARGN})
  if(arg_TEST AND TARGET topolet::sdk-testing)
    add_executable(${name}_test ${arg_TEST})
    target_link_libraries(${name}_test PRIVATE topolet::sdk-testing)
    set_target_properties(${name}_test PROPERTIES CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON)
    add_test(NAME ${name}.unit COMMAND ${name}_test)
  elseif(arg_TEST)
    message(WARNING "${name}_test is not built: it needs hwloc, found by pkg-config (libhwloc-dev, pkg-config)")
  endif()
  find_program(TOPOLET_PLUGIN_CHECK topolet-plugin-check)
  if(TOPOLET_PLUGIN_CHECK)
    add_test(NAME ${name}.check COMMAND ${TOPOLET_PLUGIN_CHECK} $<TARGET_FILE:${name}>)
  endif()
  find_program(TOPOLET topolet)
  if(arg_WORKLOAD AND TOPOLET)
    if(NOT arg_MACHINE)
      set(arg_MACHINE "pack:2 numa:1 core:4 pu:2")
    endif()
    add_test(NAME ${name}.simulate COMMAND ${TOPOLET} simulate --topology ${arg_MACHINE} --plugin $<TARGET_FILE:${name}>
      --workload ${CMAKE_CURRENT_SOURCE_DIR}/${arg_WORKLOAD} --explain --placement.deadline-ms=60000 ${arg_OPTIONS})
    if(arg_EXPECT)
      set_tests_properties(${name}.simulate PROPERTIES PASS_REGULAR_EXPRESSION "${arg_EXPECT}")
    endif()
  endif()
endfunction()
