#include "trainer/devices.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/trainer/small_model.h"
#include "trainer/model/cuda_library.h"

namespace spes::trainer {
namespace {

using Names = std::vector<std::string>;

// What the std::invalid_argument says that f throws.
template <class F>
std::string Refusal(F f) {
  try {
    f();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "no refusal";
}

TEST(Devices, AreNamed) {
  EXPECT_FALSE(ParseDevice("cpu").cuda);
  EXPECT_TRUE(ParseDevice("cuda:0").cuda);
  EXPECT_EQ(ParseDevice("cuda:0").index, 0);
  EXPECT_EQ(ParseDevice("cuda:12").index, 12);
  for (const char* name : {"", "gpu", "cuda", "cuda:", "cuda:-1", "cuda:+1", "cuda:01", "cuda:1x",
                           "cuda: 1", "cpu:0", "CPU", "cuda:128", "cuda:99999999999"}) {
    std::string expected = "'";
    expected.append(name).append("' is no device; there are cpu, cuda:0, cuda:1 …");
    EXPECT_EQ(Refusal([&] { ParseDevice(name); }), expected);
  }
}

TEST(Devices, AreTakenInTurn) {
  const Names four{"cuda:0", "cuda:1", "cuda:2", "cuda:3"};
  EXPECT_EQ(DevicesOfNode(four, 1, 0), Names{"cuda:0"});
  EXPECT_EQ(DevicesOfNode(four, 1, 3), Names{"cuda:3"});
  EXPECT_EQ(DevicesOfNode(four, 1, 4), Names{"cuda:0"});
  EXPECT_EQ(DevicesOfNode(four, 2, 1), (Names{"cuda:2", "cuda:3"}));
  EXPECT_EQ(DevicesOfNode(four, 2, 2), (Names{"cuda:0", "cuda:1"}));
  EXPECT_EQ(DevicesOfNode(four, 4, 7), four);
  EXPECT_EQ(DevicesOfNode(Names{"cpu"}, 1, 9), Names{"cpu"});
  EXPECT_EQ(Refusal([&] { DevicesOfNode(four, 3, 0); }),
            "devices_per_node is 3, which does not divide the 4 devices");
  EXPECT_EQ(Refusal([&] { DevicesOfNode(four, 8, 0); }),
            "devices_per_node is 8, which does not divide the 4 devices");
  EXPECT_EQ(Refusal([&] { DevicesOfNode(Names{}, 1, 0); }),
            "devices_per_node is 1, which does not divide the 0 devices");
}

TEST(CudaLibrary, RefusesGpusThatAreNotThere) {
  EXPECT_EQ(Refusal([] {
              CheckGpus(Names{"cpu", "cuda:0"}, 0);
            }),
            "devices: cuda:0: this machine has no GPU that CUDA can use, or no driver for it (see "
            "nvidia-smi)");
  EXPECT_EQ(Refusal([] {
              CheckGpus(Names{"cuda:0", "cuda:1"}, 1);
            }),
            "devices: cuda:1: this machine has 1 GPU; the last is cuda:0");
  EXPECT_EQ(Refusal([] { CheckGpus(Names{"cuda:4"}, 4); }),
            "devices: cuda:4: this machine has 4 GPUs; the last is cuda:3");
  EXPECT_EQ(Refusal([] { CheckGpus(Names{"cuda:0", "cuda:3", "cpu"}, 4); }), "no refusal");
  EXPECT_EQ(Refusal([] { CheckGpus(Names{"cpu"}, 0); }), "no refusal");
}

TEST(CudaLibrary, SaysWhatIsMissing) {
  std::string name = (std::filesystem::temp_directory_path() / "spes-XXXXXX").string();
  const std::string folder = mkdtemp(name.data());
  const std::string library = folder + "/libtorch_cuda.so";
  EXPECT_EQ(Refusal([&] { LoadCudaLibrary(folder); }),
            "libtorch_cuda.so cannot be loaded (" + library +
                ": cannot open shared object file: No such file or directory): run ./dev setup "
                "--cuda");
  std::ofstream(library) << "not a library";
  EXPECT_NE(Refusal([&] { LoadCudaLibrary(folder); }).find("): run ./dev setup --cuda"),
            std::string::npos);
  std::filesystem::remove_all(folder);
}

TEST(CudaLibrary, TheHostNeedsNone) {
  EXPECT_EQ(Refusal([] { RequireDevices(Names{"cpu", "cpu"}); }), "no refusal");
  EXPECT_EQ(Refusal([] {
              RequireDevices(Names{"cpu", "tpu"});
            }),
            "'tpu' is no device; there are cpu, cuda:0, cuda:1 …");
}

// Whatever this machine has: 128 GPUs it has not.
TEST(CudaLibrary, ANodeOnAGpuThatIsNotThereIsRefused) {
  SmallModel setup;
  setup.config.devices = {"cpu", "cuda:127"};
  const std::string refusal = Refusal([&] { setup.Make(0); });
  EXPECT_EQ(refusal.rfind("devices: cuda:127: ", 0), 0u) << refusal;
  EXPECT_EQ(refusal.find('\n'), std::string::npos);
}

}  // namespace
}  // namespace spes::trainer
