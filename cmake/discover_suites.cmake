# Is run after a program of unit tests is built: writes for ctest one test for each suite of it, NAME.SUITE.
# -D NAME=… -D PROGRAM=… -D OUT=…
execute_process(COMMAND ${PROGRAM} --gtest_list_tests OUTPUT_VARIABLE listed RESULT_VARIABLE code TIMEOUT 60)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "${PROGRAM} --gtest_list_tests ended with ${code}")
endif()
string(REGEX REPLACE "[][;]" "_" listed "${listed}")  # what parameters may have, and lists of CMake not
string(REPLACE "\n" ";" lines "${listed}")
set(tests)
foreach(line ${lines})
  # A suite begins in the first column and ends with a dot; its tests are indented.
  if(line MATCHES "^([^ .]+)\\.( |$)")
    set(suite ${CMAKE_MATCH_1})
    string(APPEND tests
      "add_test([=[${NAME}.${suite}]=] [=[${PROGRAM}]=] [=[--gtest_filter=${suite}.*]=] --gtest_brief=1)\n"
      "set_tests_properties([=[${NAME}.${suite}]=] PROPERTIES LABELS unit TIMEOUT 600)\n")
  endif()
endforeach()
file(WRITE ${OUT} "${tests}")
