// Lossless compression of a block's code.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace spes::trainer {

// `text` as it is, or compressed by zstd (level 1 to 19) where that is shorter; a byte in front
// says which, so never more than one byte longer. `width`: bytes of each of the numbers that `text`
// consists of (1 if it does not); bytes of equal significance are put side by side first, which
// makes codes shorter. The compressed bytes, not what they mean, may differ between versions of
// zstd. Throws std::runtime_error if zstd fails.
std::string Compress(int level, int width, std::string_view text);

// What Compress was given. Throws std::invalid_argument on a code that it does not write or that
// says to be longer than `largest`; allocates no more than that.
std::string Decompress(int width, std::int64_t largest, std::string_view code);

}  // namespace spes::trainer
