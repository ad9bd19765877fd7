// The data of a run: domains split into training and held-out parts, and a source for each node.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trainer/data/batch.h"
#include "trainer/data/config.h"

namespace spes::trainer {

// What cannot be beaten by looking at single tokens or pairs, on the held-out samples of a domain.
struct BaselineLoss {
  double unigram = 0,
         bigram = 0;   // nats per token; NaN where the vocabulary is too large for a table
  double entropy = 0;  // of the synthetic language, the least that any model can reach; else NaN
};

// Immutable and thread-safe once built; sources share it.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual int domains() const = 0;
  virtual const std::string& domain(int d) const = 0;
  virtual std::int64_t train_tokens(int d) const = 0;
  virtual std::int64_t held_out_tokens(int d) const = 0;
  // Held-out samples of `context` + 1 tokens in batches of at most `sequences`, evenly spaced over
  // the held-out part, eval_tokens in all or what there is.
  virtual std::vector<Batch> HeldOut(int d, std::int64_t sequences, std::int64_t context) const = 0;
  // Baselines of domain d, counted over its whole training part and measured on exactly the targets
  // of HeldOut(d, …, context). The bigram is smoothed towards the unigram by the weight that is
  // best on them.
  virtual BaselineLoss Baseline(int d, std::int64_t context) const = 0;
  // The stream of node `node` of `nodes`, by the sharing rule and the seed (see sampler.h). Samples
  // are windows of context + 1 tokens at stride `context`. Throws std::invalid_argument, one line,
  // when nodes, domains and samples do not fit the rule.
  virtual std::unique_ptr<BatchSource> Source(int node, int nodes, std::int64_t context,
                                              std::uint64_t seed) const = 0;
};

// Reads and tokenises (or maps) everything. `vocabulary`: of the model; a token id beyond it is an
// error. Catalogue names are already resolved into files. Throws std::invalid_argument, one line
// that names the file or domain: file missing or empty, corpus shorter than one sample of context +
// 1 tokens in either part, tokenizer model unreadable, more tokens than the vocabulary.
std::shared_ptr<const Dataset> OpenDataset(const DataConfig& config, std::int64_t vocabulary,
                                           std::int64_t context);

}  // namespace spes::trainer
