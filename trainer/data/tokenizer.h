// Text to token ids.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "trainer/data/config.h"
#include "trainer/data/token_array.h"

namespace spes::trainer {

// Thread-safe.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  // Ids are 0 … vocabulary() − 1.
  virtual std::int64_t vocabulary() const = 0;
  virtual std::unique_ptr<TokenArray> Encode(std::string text) const = 0;
};

// kBytes: each byte is its own id, 256 in all. kSentencePiece: the model file `model`; the text is
// encoded in pieces of about 64 KiB that end at a line's end where there is one, on all cores (the
// ids do not depend on how many), without begin and end marks. Throws std::invalid_argument, one
// line, when the model cannot be read.
std::unique_ptr<Tokenizer> MakeTokenizer(TokenizerKind kind, const std::string& model);

}  // namespace spes::trainer
