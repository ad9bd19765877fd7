#include "trainer/data/permutation.h"

#include <algorithm>
#include <bit>
#include <cassert>

#include "trainer/data/keyed_random.h"

namespace spes::trainer {

Permutation::Permutation(std::int64_t n, std::uint64_t key) : n_(n) {
  assert(n >= 1);
  const int bits = std::bit_width(static_cast<std::uint64_t>(n - 1));
  half_bits_ = std::max(1, (bits + 1) / 2);
  for (int r = 0; r < kRounds; ++r) round_keys_[r] = Key(key, r);
}

std::int64_t Permutation::operator[](std::int64_t index) const {
  assert(index >= 0 && index < n_);
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  auto x = static_cast<std::uint64_t>(index);
  do {
    std::uint64_t left = x >> half_bits_, right = x & mask;
    for (const std::uint64_t key : round_keys_) {
      const std::uint64_t next = left ^ (Mix(key ^ right) & mask);
      left = right;
      right = next;
    }
    x = left << half_bits_ | right;
  } while (x >= static_cast<std::uint64_t>(n_));
  return static_cast<std::int64_t>(x);
}

}  // namespace spes::trainer
