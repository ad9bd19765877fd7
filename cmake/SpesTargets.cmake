# Own targets: one library per room, every *.cc of the folders named.
include(GNUInstallDirs)
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)

add_library(spes_options INTERFACE)
target_compile_options(spes_options INTERFACE -Wall -Wextra -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(spes_options INTERFACE -Wno-restrict)  # GCC bug 105651: warns of "x" + string
endif()
target_include_directories(spes_options INTERFACE ${CMAKE_SOURCE_DIR})
if(SPES_ARCH)
  target_compile_options(spes_options INTERFACE -march=${SPES_ARCH})
endif()
# A product and a sum stay two roundings everywhere: results do not depend on what the optimiser fuses.
# No errno from sqrt and no trapping comparisons, which nobody reads and which keep loops from using vectors;
# the values stay the same.
target_compile_options(spes_options INTERFACE -ffp-contract=off -fno-math-errno -fno-trapping-math)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT CMAKE_DISABLE_PRECOMPILE_HEADERS)
  # ccache preprocesses first, and GCC then needs this to know the precompiled header again.
  target_compile_options(spes_options INTERFACE -fpch-preprocess)
endif()
set(spes_test_timeout 300)
if(SPES_SANITIZE)
  # LibTorch and ns-3 are not instrumented: cmake/sanitizers/ lists what that makes them report wrongly.
  target_compile_options(spes_options INTERFACE -fsanitize=${SPES_SANITIZE} -fno-sanitize-recover=all
                                                -fno-omit-frame-pointer)
  target_link_options(spes_options INTERFACE -fsanitize=${SPES_SANITIZE})
  set(spes_test_timeout 1500)
endif()

# spes_sources(<out> <folder>...): the *.cc files directly in these folders.
function(spes_sources out)
  set(all)
  foreach(folder IN LISTS ARGN)
    file(GLOB found CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.cc)
    list(APPEND all ${found})
  endforeach()
  set(${out} ${all} PARENT_SCOPE)
endfunction()

# spes_library(<name> SOURCES ... PUBLIC ... PRIVATE ...)
function(spes_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX)
  target_link_libraries(${name} PUBLIC spes_options ${arg_PUBLIC} PRIVATE ${arg_PRIVATE})
endfunction()

# spes_uses_regex(<source>...): GCC takes <regex> with the address sanitizer for a read of what was never
# written (bug 105562).
function(spes_uses_regex)
  if(SPES_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS -Wno-maybe-uninitialized)
  endif()
endfunction()

# spes_test(<name> SOURCES ... LIBRARIES ...): a GoogleTest program; each test is a ctest of its own.
function(spes_test name)
  cmake_parse_arguments(arg "" "" "SOURCES;LIBRARIES" ${ARGN})
  if(NOT arg_SOURCES)
    return()
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_LIBRARIES} spes_options GTest::gmock GTest::gtest GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE SPES_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  gtest_discover_tests(${name} NO_PRETTY_VALUES PROPERTIES TIMEOUT ${spes_test_timeout} DISCOVERY_TIMEOUT 120)
endfunction()
