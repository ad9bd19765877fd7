// What fuzzing has found, and what lies around it, as ordinary tests.
#include <gtest/gtest.h>

#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>

#include "tests/fuzz/damage.h"
#include "tests/fuzz/harness.h"

namespace spes::fuzz {
namespace {

constexpr int kDamaged = 20000;

std::map<std::string, std::string> KeptInputs(const char* name) {
  std::map<std::string, std::string> inputs;
  const auto folder = std::filesystem::path(SPES_SOURCE_DIR) / "tests/fuzz/corpus" / name;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    inputs[entry.path().filename()].assign(std::istreambuf_iterator<char>(file), {});
  }
  return inputs;
}

class Fuzz : public testing::TestWithParam<Harness> {
 protected:
  // On the heap without room behind it, so that a byte read too far is noticed.
  bool Takes(const std::string& input) const {
    const std::vector<char> bytes(input.begin(), input.end());
    try {
      return GetParam().run(std::as_bytes(std::span(bytes)));
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what() << ": " << testing::PrintToString(input);
      return false;
    }
  }
};

TEST_P(Fuzz, KeptInputs) {
  const auto inputs = KeptInputs(GetParam().name);
  std::size_t taken = 0, bytes = 0;
  for (const auto& [name, input] : inputs) {
    SCOPED_TRACE(name);
    taken += Takes(input);
    bytes += input.size();
  }
  // Where the format has changed, the inputs have to.
  EXPECT_GE(taken, 5u);
  EXPECT_GE(inputs.size(), taken + 5);
  EXPECT_LE(bytes, 200u << 10) << "a repository is no place for large files";
}

TEST_P(Fuzz, DamagedInputs) {
  const auto inputs = KeptInputs(GetParam().name);
  ASSERT_FALSE(inputs.empty());
  std::mt19937_64 random(1);
  int taken = 0;
  for (int i = 0; i < kDamaged && !HasFailure(); ++i) {
    const auto& [name, input] =
        *std::next(inputs.begin(), static_cast<std::ptrdiff_t>(random() % inputs.size()));
    SCOPED_TRACE(name);
    taken += Takes(Damaged(input, random));
  }
  EXPECT_GT(taken, 10);
  EXPECT_LT(taken, kDamaged / 2);
}

INSTANTIATE_TEST_SUITE_P(All, Fuzz, testing::ValuesIn(kHarnesses),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace spes::fuzz
