// The ways in which the same model is computed, for tests that hold all of them to one truth.
#pragma once

#include <cstdlib>
#include <ostream>
#include <string>
#include <vector>

#include "trainer/model/cuda_library.h"
#include "trainer/model_node.h"

namespace spes::trainer {

struct Way {
  std::string name;
  std::string device = "cpu";
  bool library_operators = false;
};

inline std::ostream& operator<<(std::ostream& out, const Way& way) { return out << way.name; }

// The operators on host memory, those of LibTorch on the host, and those on the device that
// SPES_TEST_DEVICE names, if it does: tests/device/check.sh sets it.
inline std::vector<Way> Ways() {
  std::vector<Way> ways{{"Host"}, {"Library", "cpu", true}};
  if (const char* device = std::getenv("SPES_TEST_DEVICE")) {
    InitLibTorch();
    RequireDevices(std::vector<std::string>{device});
    ways.push_back({"Device", device});
  }
  return ways;
}

}  // namespace spes::trainer
