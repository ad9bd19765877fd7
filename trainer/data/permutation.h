// A pseudo-random order of any length in constant memory.
#pragma once

#include <cstdint>

namespace spes::trainer {

// A permutation of 0 … n − 1 chosen by a key: a Feistel cipher on the next even number of bits,
// applied again until the value is below n (cycle walking: Black and Rogaway 2002,
// doi:10.1007/3-540-45760-7_9). Fewer than four rounds of the cipher on average.
class Permutation {
 public:
  // n ≥ 1.
  Permutation(std::int64_t n, std::uint64_t key);

  std::int64_t size() const { return n_; }
  // The element at `index`, 0 ≤ index < n.
  std::int64_t operator[](std::int64_t index) const;

 private:
  static constexpr int kRounds = 6;
  std::int64_t n_;
  int half_bits_;
  std::uint64_t round_keys_[kRounds];
};

}  // namespace spes::trainer
