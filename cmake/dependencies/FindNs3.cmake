# ns-3 out of the PyPI wheel: ns3::<module> for each module named below.
# The wheel's own CMake package names paths of the machine it was built on.
set(Ns3_VERSION 3.44)
find_path(Ns3_WHEEL_INCLUDE_DIR ns3/core-module.h PATH_SUFFIXES include)
include(FindPackageHandleStandardArgs)
set(ns3_libraries)
foreach(module IN ITEMS core network internet point-to-point traffic-control applications stats fd-net-device
                        bridge)
  string(REPLACE "-" "_" variable ${module})
  find_library(Ns3_${variable}_LIBRARY ns${Ns3_VERSION}-${module} NAMES ns3.44-${module} PATH_SUFFIXES lib64 lib)
  list(APPEND ns3_libraries Ns3_${variable}_LIBRARY)
endforeach()
find_package_handle_standard_args(Ns3 REQUIRED_VARS Ns3_WHEEL_INCLUDE_DIR ${ns3_libraries}
                                  VERSION_VAR Ns3_VERSION)
if(Ns3_FOUND AND NOT TARGET ns3::core)
  # The wheel's include folder also holds Boost 1.66, which would shadow the system's: show only ns3/.
  set(ns3_include ${CMAKE_BINARY_DIR}/ns3_include)
  file(MAKE_DIRECTORY ${ns3_include})
  file(CREATE_LINK ${Ns3_WHEEL_INCLUDE_DIR}/ns3 ${ns3_include}/ns3 SYMBOLIC)
  foreach(module IN ITEMS core network internet point-to-point traffic-control applications stats
                          fd-net-device bridge)
    string(REPLACE "-" "_" variable ${module})
    add_library(ns3::${module} SHARED IMPORTED)
    set_target_properties(ns3::${module} PROPERTIES
      IMPORTED_LOCATION ${Ns3_${variable}_LIBRARY}
      INTERFACE_INCLUDE_DIRECTORIES ${ns3_include})
    target_link_options(ns3::${module} INTERFACE LINKER:--allow-shlib-undefined)
  endforeach()
endif()
