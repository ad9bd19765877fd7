#include "trainer/sync/codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>

#include "trainer/sync/bfloat16.h"
#include "trainer/sync/block_values.h"
#include "trainer/sync/compress.h"
#include "trainer/sync/float_bits.h"
#include "trainer/sync/quantize.h"
#include "trainer/sync/top_k.h"

namespace spes::trainer {

namespace {

constexpr int kLargestGroup = 1 << 20;

bool IsQuantized(CodecKind kind) { return kind == CodecKind::kInt8 || kind == CodecKind::kInt4; }
int Levels(CodecKind kind) { return kind == CodecKind::kInt8 ? kInt8Levels : kInt4Levels; }

void Require(bool holds, std::string_view what) {
  if (!holds) throw std::invalid_argument(fmt::format("codec: {}", what));
}

// The largest size before compression; the only one for all kinds but kTopK.
std::int64_t LargestBody(const CodecConfig& config, std::int64_t element_bytes, std::int64_t n) {
  switch (config.kind) {
    case CodecKind::kRaw:
      return n * element_bytes;
    case CodecKind::kBf16:
      return n * 2;
    case CodecKind::kInt8:
    case CodecKind::kInt4:
      return QuantizedBytes(Levels(config.kind), config.group, n);
    case CodecKind::kTopK:
      return LargestTopK(KeptElements(config.keep, n), n, element_bytes);
  }
  return 0;
}

// Bytes of the numbers that a body consists of.
int BodyWidth(CodecKind kind, DType dtype) {
  if (kind == CodecKind::kRaw) return static_cast<int>(ElementBytes(dtype));
  return kind == CodecKind::kBf16 ? 2 : 1;
}

std::string_view Bytes(auto values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

// out = a XOR b, byte by byte.
void Xor(std::string_view a, std::string_view b, char* out) {
  for (std::size_t i = 0; i < a.size(); ++i) out[i] = static_cast<char>(a[i] ^ b[i]);
}

template <class T>
std::string EncodeBody(const CodecConfig& config, std::span<const T> x) {
  switch (config.kind) {
    case CodecKind::kRaw:
      break;
    case CodecKind::kBf16:
      return EncodeBf16(x);
    case CodecKind::kInt8:
    case CodecKind::kInt4:
      return Quantize(Levels(config.kind), config.group, x);
    case CodecKind::kTopK:
      return EncodeTopK(KeptElements(config.keep, static_cast<std::int64_t>(x.size())), x);
  }
  return std::string(Bytes(x));
}

template <class T>
void DecodeBody(const CodecConfig& config, std::string_view body, std::span<T> x) {
  switch (config.kind) {
    case CodecKind::kRaw:
      std::memcpy(x.data(), body.data(), body.size());
      return;
    case CodecKind::kBf16:
      return DecodeBf16(body, x);
    case CodecKind::kInt8:
    case CodecKind::kInt4:
      return Dequantize(Levels(config.kind), config.group, body, x);
    case CodecKind::kTopK:
      return DecodeTopK(KeptElements(config.keep, static_cast<std::int64_t>(x.size())), body, x);
  }
}

// Reads a body into `out`, a zeroed buffer.
template <class T>
void ReadBody(const CodecConfig& config, const BlockSpec& block, std::string_view body,
              const Buffer* base, Buffer* out) {
  const BlockValues<T> values(block, *out);
  const std::span<T> x = values.span();
  if (config.kind == CodecKind::kRaw && body.size() != x.size_bytes()) {
    throw std::invalid_argument(fmt::format("a block's raw code has {} bytes; {} values take {}",
                                            body.size(), x.size(), x.size_bytes()));
  }
  if (!config.differences) {
    DecodeBody(config, body, x);
  } else {
    const BlockValues<const T> before(block, *base);
    const std::span<const T> b = before.span();
    if (config.kind == CodecKind::kRaw) {
      Xor(body, Bytes(b), reinterpret_cast<char*>(x.data()));
    } else {
      DecodeBody(config, body, x);
      // Without a difference every bit stays: −0 and NaN too.
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = x[i] == 0 ? b[i] : OneNaN(b[i] + x[i]);
    }
  }
  values.Store();
}

// The body of value + residual, or of its difference from the base.
template <class T>
std::string WriteBody(const CodecConfig& config, const BlockSpec& block, const Buffer& value,
                      const Buffer* base, const Buffer* residual) {
  const BlockValues<const T> values(block, value);
  const std::span<const T> v = values.span();
  if (!base && !residual) return EncodeBody<T>(config, v);
  std::optional<BlockValues<const T>> before, lost;
  if (base) before.emplace(block, *base);
  if (residual) lost.emplace(block, *residual);
  if (config.kind == CodecKind::kRaw) {
    std::string body(v.size_bytes(), '\0');
    Xor(Bytes(v), Bytes(before->span()), body.data());
    return body;
  }
  const auto x = std::make_unique_for_overwrite<T[]>(v.size());
  const T* b = base ? before->span().data() : nullptr;
  const T* r = residual ? lost->span().data() : nullptr;
  if (b && r) {
    for (std::size_t i = 0; i < v.size(); ++i) x[i] = OneNaN((v[i] - b[i]) + r[i]);
  } else if (b) {
    for (std::size_t i = 0; i < v.size(); ++i) x[i] = OneNaN(v[i] - b[i]);
  } else {
    for (std::size_t i = 0; i < v.size(); ++i) x[i] = OneNaN(v[i] + r[i]);
  }
  return EncodeBody<T>(config, {x.get(), v.size()});
}

// residual += value − decoded: what was to be read back and was not. Nothing is owed of what is not
// finite: it would stay so for ever.
template <class T>
void UpdateResidual(const BlockSpec& block, const Buffer& value, const Buffer& decoded,
                    Buffer* residual) {
  const BlockValues<const T> values(block, value), read(block, decoded);
  const BlockValues<T> residuals(block, *residual);
  const std::span<const T> v = values.span(), d = read.span();
  const std::span<T> r = residuals.span();
  for (std::size_t i = 0; i < v.size(); ++i) {
    const T lost = (v[i] - d[i]) + r[i];
    r[i] = lost - lost == 0 ? lost : T{0};
  }
  residuals.Store();
}

void RequireSize(const BlockSpec& block, DType dtype, const Buffer* buffer, const char* which) {
  const std::int64_t wanted = block.buffer_elements * ElementBytes(dtype);
  if (buffer && buffer->bytes() == wanted) return;
  throw std::invalid_argument(
      fmt::format("codec: {} of a block has {} bytes; its description has {}", which,
                  buffer ? buffer->bytes() : 0, wanted));
}

}  // namespace

void Validate(const CodecConfig& c) {
  const CodecConfig unset;
  Require(c.group >= 1 && c.group <= kLargestGroup,
          fmt::format("group is {}; from 1 to {}", c.group, kLargestGroup));
  Require(IsQuantized(c.kind) || c.group == unset.group,
          "group has an effect on int8 and int4 only");
  Require(c.keep > 0 && c.keep <= 1, fmt::format("keep is {}; above 0, at most 1", c.keep));
  Require(c.kind == CodecKind::kTopK || c.keep == unset.keep, "keep has an effect on top-k only");
  Require(!c.skip_unchanged || c.differences, "skip_unchanged needs differences");
  Require(c.zstd >= 0 && c.zstd <= 19,
          fmt::format("zstd is {}; a level from 1 to 19, or 0 for none", c.zstd));
}

bool IsLossless(const CodecConfig& config) { return config.kind == CodecKind::kRaw; }

std::int64_t LargestCode(const CodecConfig& config, DType dtype, const BlockSpec& block) {
  if (block.elements == 0) return 0;
  return LargestBody(config, ElementBytes(dtype), block.elements) + (config.zstd > 0 ? 1 : 0);
}

CodedBlock Encode(const CodecConfig& config, DType dtype, const BlockSpec& block,
                  const SharedBuffer& value, const Buffer* base, Buffer* residual) {
  RequireSize(block, dtype, value.get(), "the value");
  if (config.differences) RequireSize(block, dtype, base, "the base");
  if (!config.differences) base = nullptr;
  if (!config.error_feedback || IsLossless(config)) residual = nullptr;
  if (residual) RequireSize(block, dtype, residual, "the residual");
  const bool nothing = block.elements == 0, single = dtype == DType::kFloat32;
  std::string body;
  if (!nothing) {
    body = single ? WriteBody<float>(config, block, *value, base, residual)
                  : WriteBody<double>(config, block, *value, base, residual);
  }
  CodedBlock coded;
  if (nothing || IsLossless(config)) {
    coded.decoded =
        HasZeroPadding(block, dtype, *value) ? value : CopyOfParts(block, dtype, *value);
  } else {
    auto decoded = std::make_shared<Buffer>(value->bytes());
    single ? ReadBody<float>(config, block, body, base, decoded.get())
           : ReadBody<double>(config, block, body, base, decoded.get());
    coded.decoded = std::move(decoded);
  }
  if (residual) {
    single ? UpdateResidual<float>(block, *value, *coded.decoded, residual)
           : UpdateResidual<double>(block, *value, *coded.decoded, residual);
  }
  if (config.skip_unchanged && SameValues(block, dtype, *coded.decoded, *base)) {
    body.clear();
  } else if (config.zstd > 0 && !nothing) {
    body = Compress(config.zstd, BodyWidth(config.kind, dtype), body);
  }
  coded.code = MakeCode(std::move(body));
  return coded;
}

SharedBuffer Decode(const CodecConfig& config, DType dtype, const BlockSpec& block,
                    std::string_view code, const Buffer* base, const Allocate& allocate) {
  if (config.differences) RequireSize(block, dtype, base, "the base");
  const std::int64_t bytes = ElementBytes(dtype);
  const bool nothing = block.elements == 0;
  if (nothing ? !code.empty() : code.empty() && !config.skip_unchanged) {
    throw std::invalid_argument(
        fmt::format("a block of {} values has a code of {} bytes", block.elements, code.size()));
  }
  if (code.empty() && !nothing) return CopyOfParts(block, dtype, *base, allocate);
  auto decoded = std::make_shared<Buffer>(Allocated(allocate, block.buffer_elements * bytes));
  if (nothing) return decoded;
  std::string inflated;
  if (config.zstd > 0) {
    inflated =
        Decompress(BodyWidth(config.kind, dtype), LargestBody(config, bytes, block.elements), code);
    code = inflated;
  }
  dtype == DType::kFloat32 ? ReadBody<float>(config, block, code, base, decoded.get())
                           : ReadBody<double>(config, block, code, base, decoded.get());
  return decoded;
}

}  // namespace spes::trainer
