// LibTorch's CUDA half, which this program loads only when a device asks for it. No LibTorch here.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace spes::trainer {

// Makes all of these devices usable, or throws std::invalid_argument, one line: a name that is
// none, no CUDA library beside the one that this program is linked to, no GPU, or none of that
// number. Where there is a GPU among them: before the process differentiates anything, for LibTorch
// counts its devices then and never again. Products are deterministic, and in float32 where they
// should be.
void RequireDevices(std::span<const std::string> devices);

// What RequireDevices does, for tests.
//
// Loads libtorch_cuda.so from `folder`. Throws std::invalid_argument, one line.
void LoadCudaLibrary(const std::string& folder);
// Throws std::invalid_argument, one line, unless each is the CPU or one of `gpus` GPUs.
void CheckGpus(std::span<const std::string> devices, int gpus);

}  // namespace spes::trainer
