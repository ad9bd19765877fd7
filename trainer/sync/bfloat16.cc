#include "trainer/sync/bfloat16.h"

#include <fmt/format.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <stdexcept>

#include "trainer/sync/float_bits.h"

namespace spes::trainer {

template <class T>
std::string EncodeBf16(std::span<const T> x) {
  std::string code(2 * x.size(), '\0');
  char* out = code.data();
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(x[i]));
    const std::uint32_t rounded = (bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16;
    const auto half =
        static_cast<std::uint16_t>((bits & 0x7FFFFFFFU) > 0x7F800000U ? 0x7FC0U : rounded);
    std::memcpy(out + 2 * i, &half, 2);
  }
  return code;
}

template <class T>
void DecodeBf16(std::string_view code, std::span<T> x) {
  if (code.size() != 2 * x.size()) {
    throw std::invalid_argument(fmt::format("a block's bf16 code has {} bytes; {} values take {}",
                                            code.size(), x.size(), 2 * x.size()));
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    std::uint16_t half;
    std::memcpy(&half, code.data() + 2 * i, 2);
    x[i] = static_cast<T>(std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16));
  }
}

template std::string EncodeBf16<float>(std::span<const float>);
template std::string EncodeBf16<double>(std::span<const double>);
template void DecodeBf16<float>(std::string_view, std::span<float>);
template void DecodeBf16<double>(std::string_view, std::span<double>);

}  // namespace spes::trainer
