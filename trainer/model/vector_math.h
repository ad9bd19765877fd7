// Arithmetic over rows that compilers turn into vector instructions. Reductions keep the order of
// 16 partial sums whatever the instruction set, so that the bits do not depend on it.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace spes::trainer {

inline constexpr int kLanes = 16;

// A sum of many terms, kept as kLanes partial sums that are added pairwise at the end.
template <class T>
class LaneSum {
 public:
  // Adds the product of kLanes elements each of one, two or three rows.
  void Add(const T* a) {
    Vector x;
    std::memcpy(&x, a, sizeof(x));
    sum_ += x;
  }
  void Add(const T* a, const T* b) {
    Vector x, y;
    std::memcpy(&x, a, sizeof(x));
    std::memcpy(&y, b, sizeof(y));
    sum_ += x * y;
  }
  void Add(const T* a, const T* b, const T* c) {
    Vector x, y, z;
    std::memcpy(&x, a, sizeof(x));
    std::memcpy(&y, b, sizeof(y));
    std::memcpy(&z, c, sizeof(z));
    sum_ += x * y * z;
  }
  T Total() const {
    T part[kLanes];
    std::memcpy(part, &sum_, sizeof(part));
    for (int step = kLanes / 2; step > 0; step /= 2) {
      for (int i = 0; i < step; ++i) part[i] += part[i + step];
    }
    return part[0];
  }

 private:
  typedef T Vector __attribute__((vector_size(kLanes * sizeof(T))));
  Vector sum_{};
};

// Σ a·b over n elements.
template <class T>
T Dot(const T* a, const T* b, std::int64_t n) {
  LaneSum<T> sum;
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) sum.Add(a + i, b + i);
  T total = sum.Total();
  for (; i < n; ++i) total += a[i] * b[i];
  return total;
}

// Σ a·b·c over n elements.
template <class T>
T Dot(const T* a, const T* b, const T* c, std::int64_t n) {
  LaneSum<T> sum;
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) sum.Add(a + i, b + i, c + i);
  T total = sum.Total();
  for (; i < n; ++i) total += a[i] * b[i] * c[i];
  return total;
}

// Σ a over n elements.
template <class T>
T Sum(const T* a, std::int64_t n) {
  LaneSum<T> sum;
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) sum.Add(a + i);
  T total = sum.Total();
  for (; i < n; ++i) total += a[i];
  return total;
}

// The largest of n ≥ 1 elements; any NaN among them gives NaN or is found by what follows.
template <class T>
T Max(const T* a, std::int64_t n) {
  T lanes[kLanes];
  std::int64_t i = 0;
  T largest = a[0];
  if (n >= kLanes) {
    for (int l = 0; l < kLanes; ++l) lanes[l] = a[l];
    for (i = kLanes; i + kLanes <= n; i += kLanes) {
      for (int l = 0; l < kLanes; ++l) lanes[l] = lanes[l] < a[i + l] ? a[i + l] : lanes[l];
    }
    for (int l = 0; l < kLanes; ++l) largest = largest < lanes[l] ? lanes[l] : largest;
  }
  for (; i < n; ++i) largest = largest < a[i] ? a[i] : largest;
  return largest;
}

// e^x in float, within 2 units in the last place from −87 to 88 and the value at the nearer end
// beyond; NaN stays NaN. e^x = 2^n e^r with |r| ≤ ln 2 / 2, and Taylor's series for e^r, whose
// first term left out is below 2⁻²⁷.
inline float Exp(float x) {
  x = x < -87.0f ? -87.0f : x;
  x = x > 88.0f ? 88.0f : x;
  const float shifted = x * 1.44269504f + 12582912.0f;  // 1.5 · 2²³: rounds to an integer
  const float n = shifted - 12582912.0f;
  const float r = (x - n * 0.693359375f) - n * -2.12194440e-4f;  // ln 2 in two parts
  float e = 1.0f / 5040;
  e = e * r + 1.0f / 720;
  e = e * r + 1.0f / 120;
  e = e * r + 1.0f / 24;
  e = e * r + 1.0f / 6;
  e = e * r + 0.5f;
  e = e * r + 1.0f;
  e = e * r + 1.0f;
  const auto exponent = (std::bit_cast<std::int32_t>(shifted) - 0x4B400000 + 127) << 23;
  return e * std::bit_cast<float>(exponent);
}

inline double Exp(double x) { return std::exp(x); }

}  // namespace spes::trainer
