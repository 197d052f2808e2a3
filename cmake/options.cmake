option(TOPOLET_TESTS "Build the tests" ON)
set(TOPOLET_BENCH ON CACHE STRING
  "With the tests, build the programs that measure (tests/bench): ON, OFF, or COMPILE, which links only what judges")
set(TOPOLET_SANITIZE "" CACHE STRING "Sanitizers to build with: '', 'address;undefined' or 'thread'")
option(TOPOLET_FUZZ "With the tests, build the fuzz targets; needs clang" OFF)

set(TOPOLET_PACKAGE_REVISION 1 CACHE STRING "The Debian revision of the packages: what follows the version")
set(maintainer "topolet maintainers <maintainers@topolet.example>")
if(DEFINED ENV{DEBEMAIL})
  set(maintainer "$ENV{DEBFULLNAME} <$ENV{DEBEMAIL}>")
endif()
set(TOPOLET_PACKAGE_MAINTAINER "${maintainer}" CACHE STRING "Name and address of who makes the packages")

# Compiler flags for all of our own targets; generated code gets none of them.
add_library(topolet_flags INTERFACE)
target_compile_options(topolet_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor> -Wimplicit-fallthrough -Wcast-qual -Werror
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>
  # gcc 12 at -O3 wrongly reports overlaps in std::string's operator+.
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<CONFIG:Release>>:-Wno-restrict>
  # Where gcc 12 has vectorised the loop over the words of a set, it wrongly says that a pointer into them is freed.
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:-Wno-free-nonheap-object>
  # Is meant for headers, and in a unity build gcc takes every file for one.
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>,$<BOOL:${CMAKE_UNITY_BUILD}>>:-Wno-subobject-linkage>
  -fvisibility=hidden -fno-omit-frame-pointer -fstack-protector-strong)

if(TOPOLET_SANITIZE)
  list(JOIN TOPOLET_SANITIZE "," sanitizers)
  # Leaves out the checks at each use of a pointer, which take half of the compile time. The address sanitizer catches
  # most of the same mistakes.
  add_compile_options(-fsanitize=${sanitizers} -fno-sanitize=null,alignment,object-size,vptr -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${sanitizers})
endif()

option(TOPOLET_HARDEN "Build programs that are safe to hand out: hardened, and without paths of the build" OFF)
if(TOPOLET_HARDEN)
  include(CheckPIESupported)
  check_pie_supported()
  add_compile_options(-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -fstack-clash-protection -Wformat -Werror=format-security
    $<$<STREQUAL:${CMAKE_SYSTEM_PROCESSOR},x86_64>:-fcf-protection> -ffile-prefix-map=${PROJECT_SOURCE_DIR}/=)
  add_link_options(LINKER:-z,relro,-z,now,--as-needed)
endif()

if(TOPOLET_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "TOPOLET_FUZZ needs clang, for its libFuzzer; configure with -DCMAKE_CXX_COMPILER=clang++")
  endif()
  # libFuzzer is guided only by the branches of code that is compiled with this.
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# topolet_library(NAME [ALWAYS_OPTIMISED] SOURCES… [ALONE files…] LINK targets…): adds the static library of one room.
# ALWAYS_OPTIMISED optimises it in sanitizer builds too; it is for libraries in which the tests spend most of their time.
# With CMAKE_UNITY_BUILD, the sources are compiled as one file, except those that are also listed after ALONE: they
# define names or macros that do not go together with the others.
function(topolet_library name)
  cmake_parse_arguments(arg "ALWAYS_OPTIMISED" "" "SOURCES;ALONE;LINK" ${ARGN})
  set_source_files_properties(${arg_ALONE} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  add_library(${name} STATIC ${arg_SOURCES})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PUBLIC ${arg_LINK} PRIVATE topolet_flags)
  if(arg_ALWAYS_OPTIMISED AND TOPOLET_SANITIZE)
    target_compile_options(${name} PRIVATE -O1)
    topolet_precompile(${name} topolet_precompiled_optimised)
  else()
    topolet_precompile(${name} topolet_precompiled_std)
  endif()
endfunction()
