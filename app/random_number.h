// Numbers that no other process has.
#pragma once

#include <cstdint>
#include <random>

namespace spes::app {

// 64 random bits of the machine, not all of them 0.
inline std::uint64_t RandomNumber() {
  std::random_device random;
  std::uint64_t number = 0;
  while (number == 0) number = (std::uint64_t{random()} << 32) | random();
  return number;
}

}  // namespace spes::app
