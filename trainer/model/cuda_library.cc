#include "trainer/model/cuda_library.h"

#include <dlfcn.h>
#include <torch/csrc/api/include/torch/cuda.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include "trainer/devices.h"
#include "trainer/model/autograd.h"

namespace spes::trainer {

namespace {

constexpr const char* kLibrary = "libtorch_cuda.so";

[[noreturn]] void Fail(const std::string& device, const std::string& why) {
  throw std::invalid_argument("devices: " + device + ": " + why);
}

// The folder of the libtorch_cpu.so that this process runs.
std::string LibraryFolder() {
  Dl_info info = {};
  if (dladdr(&at::globalContext(), &info) == 0 || info.dli_fname == nullptr) return ".";
  return std::filesystem::path(info.dli_fname).parent_path().string();
}

// LibTorch says at length, on the standard error, what is missing where there is no driver.
class Silence : public c10::WarningHandler {
 public:
  void process(const c10::Warning&) override {}
};

int Gpus() {
  Silence silence;
  const c10::WarningUtils::WarningHandlerGuard guard(&silence);
  return torch::cuda::device_count();
}

void MakeDeterministic() {
  at::Context& context = at::globalContext();
  context.setAllowTF32CuBLAS(false);
  context.setAllowTF32CuDNN(false);
  context.setAllowBF16ReductionCuBLAS(false);
  context.setSDPUseCuDNN(false);  // its backward pass adds in no fixed order
}

}  // namespace

void LoadCudaLibrary(const std::string& folder) {
  // Read when cuBLAS starts: products whose bits do not depend on what else runs. Left as it is
  // where somebody has set it; LibTorch refuses values that are not deterministic.
  setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);
  const std::string path = (std::filesystem::path(folder) / kLibrary).string();
  if (dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL) != nullptr) return;
  const char* why = dlerror();
  throw std::invalid_argument(std::string(kLibrary) + " cannot be loaded (" +
                              (why != nullptr ? why : path) + "): run ./dev setup --cuda");
}

void CheckGpus(std::span<const std::string> devices, int gpus) {
  for (const std::string& name : devices) {
    const DeviceName device = ParseDevice(name);
    if (!device.cuda || device.index < gpus) continue;
    if (gpus == 0) {
      Fail(name, "this machine has no GPU that CUDA can use, or no driver for it (see nvidia-smi)");
    }
    Fail(name, "this machine has " + std::to_string(gpus) + (gpus == 1 ? " GPU" : " GPUs") +
                   "; the last is cuda:" + std::to_string(gpus - 1));
  }
}

void RequireDevices(std::span<const std::string> devices) {
  const auto gpu =
      std::ranges::find_if(devices, [](const std::string& name) { return ParseDevice(name).cuda; });
  if (gpu == devices.end()) return;
  try {
    LoadCudaLibrary(LibraryFolder());
  } catch (const std::invalid_argument& error) {
    Fail(*gpu, error.what());
  }
  CheckGpus(devices, Gpus());
  MakeDeterministic();
}

}  // namespace spes::trainer
