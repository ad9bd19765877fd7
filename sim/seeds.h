// Seeds made from seeds: one for everything that draws random numbers.
#pragma once

#include <cstdint>

namespace spes::sim {

// The finaliser of SplitMix64 (G. Steele, D. Lea, C. Flood, OOPSLA 2014): a bijection of 64 bits in
// which every input bit moves every output bit.
constexpr std::uint64_t Mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

// What SplitMix64 adds from one number of its sequence to the next.
constexpr std::uint64_t kSplitMixStep = 0x9e3779b97f4a7c15;

// Of one of the links of a network with this seed. Neighbours are close to each other: mix them.
constexpr std::uint64_t LinkSeed(std::uint64_t network, std::uint64_t link) {
  return network * 1'000'003 + link;
}

// Of one of the sources of randomness within what has this seed: the number at place `index` of
// SplitMix64's sequence, so that no two seeds share any.
constexpr std::uint64_t SourceSeed(std::uint64_t seed, std::uint64_t index) {
  return Mix(Mix(seed) + kSplitMixStep * (index + 1));
}

}  // namespace spes::sim
