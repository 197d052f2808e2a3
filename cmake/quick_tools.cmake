# A compiler cache and a fast linker, where they are installed; scripts/test and scripts/run install both. What is handed
# out (TOPOLET_HARDEN) is linked by the compiler's own linker.
option(TOPOLET_QUICK_TOOLS "Use ccache and mold if they are installed" ON)
if(TOPOLET_QUICK_TOOLS)
  find_program(TOPOLET_CCACHE ccache)
  if(TOPOLET_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    # CCACHE_DEPEND believes the compiler about what it included, instead of preprocessing each file first. The sloppiness is
    # what ccache needs to look into precompiled headers.
    set(launcher ${CMAKE_COMMAND} -E env CCACHE_DEPEND=1 CCACHE_SLOPPINESS=pch_defines,time_macros ${TOPOLET_CCACHE})
    set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
    set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  endif()
  find_program(TOPOLET_MOLD mold)
  if(TOPOLET_MOLD AND NOT TOPOLET_HARDEN AND NOT CMAKE_INTERPROCEDURAL_OPTIMIZATION)
    add_link_options(-fuse-ld=mold)
  endif()
endif()
