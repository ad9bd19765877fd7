// Inputs that were good once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <random>
#include <string>

namespace spes::fuzz {

// `good` with bytes changed, taken out, put in or cut off; or another text altogether.
inline std::string Damaged(const std::string& good, std::mt19937_64& random) {
  const auto below = [&](std::size_t n) { return n == 0 ? 0 : random() % n; };
  const auto byte = [&] { return static_cast<char>(random() % 4 == 0 ? -1 : random()); };
  std::string text = good;
  for (auto edits = 1 + random() % 3; edits > 0; --edits) {
    switch (random() % 6) {
      case 0:
        text.resize(below(text.size() + 1));
        break;
      case 1:
        text.insert(below(text.size() + 1), 1 + below(9), byte());
        break;
      case 2:
        if (!text.empty()) text.erase(below(text.size()), 1 + below(9));
        break;
      case 3:
        text.resize(below(2 * good.size() + 8));
        for (char& c : text) c = byte();
        break;
      default:  // most often near the front, where lengths are
        if (!text.empty()) {
          text[below(random() % 2 == 0 ? std::min<std::size_t>(text.size(), 16) : text.size())] ^=
              static_cast<char>(1 << random() % 8);
        }
    }
  }
  return text;
}

}  // namespace spes::fuzz
