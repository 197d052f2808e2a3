# Runs quality for a moment and checks that every section reports.
# Usage: cmake -DPROGRAM=… -DJSON=… -P quality_smoke.cmake
execute_process(COMMAND ${PROGRAM} --pods 40 --seeds 2 --json ${JSON} RESULT_VARIABLE code COMMAND_ECHO STDOUT)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "quality ended with ${code}")
endif()
file(READ ${JSON} json)

# expect_rows(SECTION ROWS FIGURE…): so many rows, and in the first one each figure of both churns.
function(expect_rows section rows)
  string(JSON length LENGTH "${json}" ${section})
  if(NOT length EQUAL rows)
    message(FATAL_ERROR "${length} rows instead of ${rows} in '${section}' of ${JSON}")
  endif()
  foreach(figure ${ARGN})
    string(JSON churns LENGTH "${json}" ${section} 0 figures ${figure} churns)
    if(NOT churns EQUAL 2)
      message(FATAL_ERROR "${churns} values of '${figure}' in '${section}' of ${JSON}")
    endif()
  endforeach()
endfunction()

expect_rows(nodes 3 pods denied "in one node" kubelet oracle "/ oracle")
expect_rows(caches 18 "in one L3" "had room" "/ had room")
expect_rows(gpus 6 "GPU pods" local "simple rule" "with moves")
expect_rows(shared 2 "max/mean, end" squeezed)
expect_rows(pods 12 denied "nodes in common" "pods in one node")
