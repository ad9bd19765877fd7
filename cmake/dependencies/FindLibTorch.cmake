# LibTorch out of the PyPI wheel: LibTorch::torch (libtorch_cpu and c10 only).
# The wheel's own TorchConfig.cmake wants a CUDA toolkit; libtorch_cuda.so is loaded at run time instead.
find_path(LibTorch_INCLUDE_DIR torch/csrc/api/include/torch/torch.h PATH_SUFFIXES include)
find_library(LibTorch_CPU_LIBRARY torch_cpu PATH_SUFFIXES lib)
find_library(LibTorch_C10_LIBRARY c10 PATH_SUFFIXES lib)
set(torch_version_file ${LibTorch_INCLUDE_DIR}/torch/headeronly/version.h)
if(EXISTS ${torch_version_file})
  file(STRINGS ${torch_version_file} torch_version REGEX "define TORCH_VERSION_(MAJOR|MINOR|PATCH) [0-9]+")
  string(REGEX REPLACE "[^0-9;]" "" torch_version "${torch_version}")
  list(JOIN torch_version . LibTorch_VERSION)
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LibTorch REQUIRED_VARS LibTorch_CPU_LIBRARY LibTorch_C10_LIBRARY
                                  LibTorch_INCLUDE_DIR VERSION_VAR LibTorch_VERSION)
if(LibTorch_FOUND AND NOT TARGET LibTorch::torch)
  add_library(LibTorch::c10 SHARED IMPORTED)
  set_target_properties(LibTorch::c10 PROPERTIES IMPORTED_LOCATION ${LibTorch_C10_LIBRARY})
  add_library(LibTorch::torch SHARED IMPORTED)
  # The wheel keeps its CUDA run-time stubs in a sibling folder, found by libtorch_cpu.so's own run path.
  set_target_properties(LibTorch::torch PROPERTIES
    IMPORTED_LOCATION ${LibTorch_CPU_LIBRARY}
    IMPORTED_LINK_DEPENDENT_LIBRARIES LibTorch::c10
    INTERFACE_LINK_LIBRARIES LibTorch::c10
    INTERFACE_INCLUDE_DIRECTORIES
      "${LibTorch_INCLUDE_DIR};${LibTorch_INCLUDE_DIR}/torch/csrc/api/include")
  target_link_options(LibTorch::torch INTERFACE LINKER:--allow-shlib-undefined)
endif()
