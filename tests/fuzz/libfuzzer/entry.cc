// What libFuzzer calls, for the harness named SPES_HARNESS.
#include <cstdint>
#include <string_view>

#include "tests/fuzz/harness.h"

namespace {

constexpr const spes::fuzz::Harness* Find(std::string_view name) {
  for (const auto& harness : spes::fuzz::kHarnesses) {
    if (name == harness.name) return &harness;
  }
  return nullptr;
}

constexpr const spes::fuzz::Harness* kHarness = Find(SPES_HARNESS);
static_assert(kHarness != nullptr, "the harness is not in kHarnesses");

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  kHarness->run({reinterpret_cast<const std::byte*>(data), size});
  return 0;
}
