# With TOPOLET_PRECOMPILE, the headers of the standard library and of GoogleTest that nearly every file includes are
# parsed once, instead of once for each file. A build without it shows whether each file includes what it uses.
option(TOPOLET_PRECOMPILE "Parse the headers that most files include once" OFF)

# topolet_precompiled(NAME HEADER [LINK targets…] [OPTIONS options…]): precompiles a header, which
# topolet_precompile(TARGET NAME) then adds to a target. The target must be compiled with the same options; it may
# define further macros that the header does not use.
function(topolet_precompiled name header)
  cmake_parse_arguments(arg "" "" "LINK;OPTIONS" ${ARGN})
  if(NOT TOPOLET_PRECOMPILE)
    return()
  endif()
  set(source ${PROJECT_BINARY_DIR}/generated/${name}.cpp)
  file(CONFIGURE OUTPUT ${source} CONTENT "")
  add_library(${name} OBJECT ${source})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_options(${name} PRIVATE ${arg_OPTIONS})
  target_link_libraries(${name} PRIVATE ${arg_LINK} topolet_flags)
  target_precompile_headers(${name} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${PROJECT_SOURCE_DIR}/${header}>")
  # It is taken from the compiler cache, too, where the same files have been checked out anew.
  target_compile_options(${name} PRIVATE "$<$<COMPILE_LANG_AND_ID:CXX,Clang>:SHELL:-Xclang -fno-pch-timestamp>")
endfunction()

function(topolet_precompile target name)
  if(TOPOLET_PRECOMPILE)
    target_precompile_headers(${target} REUSE_FROM ${name})
  endif()
endfunction()

topolet_precompiled(topolet_precompiled_std core/base/precompiled.hpp)
topolet_precompiled(topolet_precompiled_optimised core/base/precompiled.hpp OPTIONS -O1)
