// How a block's values are written down to be sent, and what is read back. Lossless or not: the
// published value is always the one that was read back.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "trainer/sync/block_table.h"
#include "trainer/sync/shared_code.h"

namespace spes::trainer {

enum class CodecKind {
  kRaw,   // the model's own type
  kBf16,  // the upper half of a float32, rounded to even
  kInt8,  // [−127, 127] × a float32 scale for each group
  kInt4,  // [−7, 7] × a float32 scale for each group, two values to a byte
  kTopK,  // the elements of largest magnitude and where they are; the others are 0
};

struct CodecConfig {
  CodecKind kind = CodecKind::kRaw;
  // Of the value from the one published before, instead of the value. With kRaw the difference of
  // the bit patterns (XOR), which loses nothing.
  bool differences = false;
  // What coding has lost of a block is added to what is coded of it the next time. No effect where
  // nothing is lost.
  bool error_feedback = false;
  int group = 128;     // kInt8, kInt4: neighbouring elements with a common scale
  double keep = 0.01;  // kTopK: share of a block's elements, in (0, 1]; at least one is kept
  // A block that is coded as "no difference" takes its header alone. Needs `differences`.
  bool skip_unchanged = false;
  int zstd = 0;  // level of lossless compression of the whole code, 1 to 19; 0: none
};

// Throws std::invalid_argument, one line, on values out of range or without effect.
void Validate(const CodecConfig& config);

// Whether what is read back equals what was written, to the bit.
bool IsLossless(const CodecConfig& config);

// Whether there is something to feed back.
inline bool KeepsResidual(const CodecConfig& config) {
  return config.error_feedback && !IsLossless(config);
}

// Whether there is nothing to do: values are sent as they are.
inline bool IsPlain(const CodecConfig& config) {
  return config.kind == CodecKind::kRaw && !config.differences && config.zstd == 0;
}

// Whether coding a value takes the value published before.
inline bool NeedsBase(const CodecConfig& config) { return config.differences; }

// The largest size of a block's code in bytes.
std::int64_t LargestCode(const CodecConfig& config, DType dtype, const BlockSpec& block);

// A block's code and what it is read back as.
struct CodedBlock {
  SharedCode code;
  SharedBuffer decoded;
};

// `value` and, with differences, `base` have the block's padded size. The codes are of x = value,
// value − base and, with error feedback, + residual, computed in the model's type. What is read
// back is D(x) or base + D(x), also in the model's type; where D(x) is 0 the base stays to the bit.
//
// `residual`, when given and `error_feedback` is set, is what was lost before: it becomes
// (value − decoded) + residual, or 0 where that is not finite. Nothing lossless touches it.
//
// A group with a value that is not finite decodes to values that are not finite, never to finite
// ones. Padding is not coded and is zero in what is read back. The same arguments give the same
// decoded bits on every machine and in every runtime, and the same code, save that other versions
// of zstd may compress to other bytes.
//
// Layout, little-endian, without a header: kRaw, kBf16 the values; kInt8, kInt4 as in quantize.h;
// kTopK as in top_k.h; with zstd as in compress.h. With skip_unchanged no bytes at all when what is
// read back equals the base to the bit; a block without elements never has any.
CodedBlock Encode(const CodecConfig& config, DType dtype, const BlockSpec& block,
                  const SharedBuffer& value, const Buffer* base, Buffer* residual);

// What Encode read back. Throws std::invalid_argument, one line, on a text that is no such code:
// never reads or allocates beyond what the block's size allows, whatever the text. What it returns
// lies in memory of `allocate`.
SharedBuffer Decode(const CodecConfig& config, DType dtype, const BlockSpec& block,
                    std::string_view code, const Buffer* base, const Allocate& allocate = {});

}  // namespace spes::trainer
