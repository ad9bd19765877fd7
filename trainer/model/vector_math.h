// Arithmetic over rows that compilers turn into vector instructions. Reductions keep a fixed order
// of partial sums whatever the instruction set, so that the bits do not depend on it.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace spes::trainer {

// Two vectors of 32 bytes, which every instruction set from AVX on holds in registers.
template <class T>
struct Lanes {
  typedef T Vector __attribute__((vector_size(32)));
  static constexpr std::int64_t kHalf = 32 / sizeof(T), kAll = 2 * kHalf;
  // One copy per vector: one of both goes through memory.
  static void Load(const T* p, Vector& low, Vector& high) {
    std::memcpy(&low, p, sizeof(low));
    std::memcpy(&high, p + kHalf, sizeof(high));
  }
};

// A sum of many terms, kept as Lanes<T>::kAll partial sums that are added pairwise at the end.
template <class T>
class LaneSum {
 public:
  // Adds the products of kAll elements each of one, two or three rows.
  void Add(const T* a) {
    Vector x0, x1;
    Lanes<T>::Load(a, x0, x1);
    low_ += x0;
    high_ += x1;
  }
  void Add(const T* a, const T* b) {
    Vector x0, x1, y0, y1;
    Lanes<T>::Load(a, x0, x1);
    Lanes<T>::Load(b, y0, y1);
    low_ += x0 * y0;
    high_ += x1 * y1;
  }
  void Add(const T* a, const T* b, const T* c) {
    Vector x0, x1, y0, y1, z0, z1;
    Lanes<T>::Load(a, x0, x1);
    Lanes<T>::Load(b, y0, y1);
    Lanes<T>::Load(c, z0, z1);
    low_ += x0 * y0 * z0;
    high_ += x1 * y1 * z1;
  }
  T Total() const {
    const Vector sum = low_ + high_;
    T part[Lanes<T>::kHalf];
    std::memcpy(part, &sum, sizeof(part));
    for (std::int64_t step = Lanes<T>::kHalf / 2; step > 0; step /= 2) {
      for (std::int64_t i = 0; i < step; ++i) part[i] += part[i + step];
    }
    return part[0];
  }

 private:
  using Vector = typename Lanes<T>::Vector;
  Vector low_{}, high_{};
};

// Σ a·b over n elements.
template <class T>
T Dot(const T* a, const T* b, std::int64_t n) {
  LaneSum<T> sum;
  std::int64_t i = 0;
  for (; i + Lanes<T>::kAll <= n; i += Lanes<T>::kAll) sum.Add(a + i, b + i);
  T total = sum.Total();
  for (; i < n; ++i) total += a[i] * b[i];
  return total;
}

// Σ a·b·c over n elements.
template <class T>
T Dot(const T* a, const T* b, const T* c, std::int64_t n) {
  LaneSum<T> sum;
  std::int64_t i = 0;
  for (; i + Lanes<T>::kAll <= n; i += Lanes<T>::kAll) sum.Add(a + i, b + i, c + i);
  T total = sum.Total();
  for (; i < n; ++i) total += a[i] * b[i] * c[i];
  return total;
}

// Σ a over n elements.
template <class T>
T Sum(const T* a, std::int64_t n) {
  LaneSum<T> sum;
  std::int64_t i = 0;
  for (; i + Lanes<T>::kAll <= n; i += Lanes<T>::kAll) sum.Add(a + i);
  T total = sum.Total();
  for (; i < n; ++i) total += a[i];
  return total;
}

// The largest of n ≥ 1 elements; a NaN among them may be passed over.
template <class T>
T Max(const T* a, std::int64_t n) {
  T largest = a[0];
  std::int64_t i = 0;
  if (n >= Lanes<T>::kHalf) {
    typename Lanes<T>::Vector best, x;
    std::memcpy(&best, a, sizeof(best));
    for (i = Lanes<T>::kHalf; i + Lanes<T>::kHalf <= n; i += Lanes<T>::kHalf) {
      std::memcpy(&x, a + i, sizeof(x));
      best = best < x ? x : best;
    }
    T part[Lanes<T>::kHalf];
    std::memcpy(part, &best, sizeof(part));
    for (const T candidate : part) largest = largest < candidate ? candidate : largest;
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
  const float shifted = std::fma(x, 1.44269504f, 12582912.0f);  // 1.5 · 2²³: rounds to an integer
  const float n = shifted - 12582912.0f;
  const float r = std::fma(n, 2.12194440e-4f, std::fma(n, -0.693359375f, x));  // ln 2 in two parts
  float e = 1.0f / 5040;
  e = std::fma(e, r, 1.0f / 720);
  e = std::fma(e, r, 1.0f / 120);
  e = std::fma(e, r, 1.0f / 24);
  e = std::fma(e, r, 1.0f / 6);
  e = std::fma(e, r, 0.5f);
  e = std::fma(e, r, 1.0f);
  e = std::fma(e, r, 1.0f);
  const auto exponent = (std::bit_cast<std::int32_t>(shifted) - 0x4B400000 + 127) << 23;
  return e * std::bit_cast<float>(exponent);
}

inline double Exp(double x) { return std::exp(x); }

}  // namespace spes::trainer
