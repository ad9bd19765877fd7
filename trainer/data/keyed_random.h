// Random numbers as a function of a key and a counter: no state, so a position is one integer.
#pragma once

#include <cstdint>

namespace spes::trainer {

// The finaliser of SplitMix64 (Steele, Lea, Flood 2014, doi:10.1145/2660193.2660195): a bijection
// of 64 bits in which every input bit moves every output bit.
constexpr std::uint64_t Mix(std::uint64_t z) {
  z += 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

// A key of its own for each list of numbers; their order matters.
template <class... Rest>
constexpr std::uint64_t Key(std::uint64_t first, Rest... rest) {
  std::uint64_t key = Mix(first);
  ((key = Mix(key ^ Mix(static_cast<std::uint64_t>(rest)))), ...);
  return key;
}

// In [0, 1), 53 bits.
constexpr double Uniform(std::uint64_t key, std::uint64_t counter) {
  return static_cast<double>(Key(key, counter) >> 11) * 0x1p-53;
}

}  // namespace spes::trainer
