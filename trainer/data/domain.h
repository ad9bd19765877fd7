// One domain: its tokens, split into a training and a held-out part.
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trainer/data/batch.h"
#include "trainer/data/config.h"
#include "trainer/data/token_array.h"
#include "trainer/data/tokenizer.h"

namespace spes::trainer {

struct Domain {
  std::string name;
  std::unique_ptr<TokenArray> tokens;
  std::int64_t train = 0;         // the first `train` tokens are trained on, the rest is held out
  std::int64_t vocabulary = 0;    // ids that occur are below this
  double entropy = std::nan("");  // of the synthetic language

  std::int64_t held_out() const { return tokens->size() - train; }
};

// Reads, maps or makes the domain's tokens. `tokenizer` may be null where the domain is not text.
// Errors as OpenDataset.
Domain OpenDomain(const DomainConfig& config, const Tokenizer* tokenizer, std::int64_t vocabulary,
                  double held_out_share, std::int64_t context);

// Samples of context + 1 tokens at stride `context` in the training part.
std::int64_t TrainingSamples(const Domain& domain, std::int64_t context);

// As Dataset::HeldOut.
std::vector<Batch> HeldOutBatches(const Domain& domain, std::int64_t eval_tokens,
                                  std::int64_t sequences, std::int64_t context);

}  // namespace spes::trainer
