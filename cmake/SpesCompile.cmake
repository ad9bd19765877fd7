# How compiles are run: how many at a time, and through ccache where there is one.

# A compile that includes LibTorch takes up to 2 GiB: without a limit a small machine swaps or kills it.
cmake_host_system_information(RESULT cores QUERY NUMBER_OF_LOGICAL_CORES)
cmake_host_system_information(RESULT memory_mib QUERY TOTAL_PHYSICAL_MEMORY)
math(EXPR jobs "${memory_mib} / 2560")
if(jobs GREATER cores)
  set(jobs ${cores})
elseif(jobs LESS 1)
  set(jobs 1)
endif()
set(SPES_JOBS ${jobs} CACHE STRING "Compiles and links at the same time (Ninja)")
set_property(GLOBAL PROPERTY JOB_POOLS spes_jobs=${SPES_JOBS})
set(CMAKE_JOB_POOL_COMPILE spes_jobs)
set(CMAKE_JOB_POOL_LINK spes_jobs)

# Precompiled headers are cached only if ccache may overlook what they define and their time stamps; with
# paths taken relative to the checkout a second clone compiles nothing that the first one has.
find_program(SPES_CCACHE ccache)
if(SPES_CCACHE AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}
      ${SPES_CCACHE})
endif()
