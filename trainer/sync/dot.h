// The scalar product, with the same bits wherever its operands lie.
#pragma once

#include <cstddef>
#include <span>

namespace spes::trainer {

// Σ a·b in double with a fixed order: eight running sums, which the compiler turns into vectors. A
// library routine is not used because its order of summation may depend on where a row lies in a
// matrix. `a` and `b` have one length.
template <class T>
double Dot(std::span<const T> a, std::span<const T> b) {
  double sums[8] = {};
  std::size_t i = 0;
  for (; i + 8 <= a.size(); i += 8) {
    for (std::size_t lane = 0; lane < 8; ++lane) {
      sums[lane] += static_cast<double>(a[i + lane]) * static_cast<double>(b[i + lane]);
    }
  }
  double sum =
      ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
  for (; i < a.size(); ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

}  // namespace spes::trainer
