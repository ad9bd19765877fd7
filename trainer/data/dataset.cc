#include "trainer/data/dataset.h"

#include <fmt/format.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <charconv>
#include <set>
#include <stdexcept>
#include <utility>

#include "trainer/data/baseline.h"
#include "trainer/data/domain.h"
#include "trainer/data/sampler.h"
#include "trainer/data/tokenizer.h"

namespace spes::trainer {
namespace {

using Domains = std::shared_ptr<const std::vector<Domain>>;

class SampleSource final : public BatchSource {
 public:
  SampleSource(Domains domains, std::int64_t context, const SamplerSetup& setup)
      : domains_(std::move(domains)), context_(context), sampler_(MakeSampler(setup)) {
    std::string identity =
        fmt::format("{} {:a} {} {} {} {}", static_cast<int>(setup.sharing), setup.dirichlet_alpha,
                    setup.node, setup.nodes, setup.seed, context);
    for (const Domain& d : *domains_) {
      identity += fmt::format(" {}:{} {}", d.name.size(), d.name, d.train);
    }
    identity_ = fmt::format("{:016x}", XXH3_64bits(identity.data(), identity.size()));
  }

  void Next(std::int64_t sequences, Batch& out) override {
    out.sequences = sequences;
    out.context = context_;
    out.tokens.resize(static_cast<std::size_t>(sequences * (context_ + 1)));
    for (std::int64_t s = 0; s < sequences; ++s) {
      const SampleRef sample = sampler_->Next();
      (*domains_)[static_cast<std::size_t>(sample.domain)].tokens->Read(
          sample.index * context_, context_ + 1, out.tokens.data() + s * (context_ + 1));
    }
  }

  // The source's identity, then the sampler's counters.
  std::string Position() const override {
    std::string text = identity_;
    for (const std::int64_t counter : sampler_->counters()) text += fmt::format(" {}", counter);
    return text;
  }

  void Seek(const std::string& position) override {
    const auto reject = [&] {
      throw std::invalid_argument(fmt::format(
          "'{}' is not a position in this node's data (another seed, node, corpus or sharing rule)",
          position));
    };
    if (!position.starts_with(identity_)) reject();
    std::vector<std::int64_t> counters;
    const char* at = position.data() + identity_.size();
    const char* const end = position.data() + position.size();
    while (at != end) {
      std::int64_t value = -1;
      const auto [rest, error] = std::from_chars(at + 1, end, value);
      if (*at != ' ' || error != std::errc{} || value < 0) reject();
      counters.push_back(value);
      at = rest;
    }
    if (counters.size() != sampler_->counters().size()) reject();
    sampler_->SetCounters(std::move(counters));
  }

 private:
  Domains domains_;
  std::int64_t context_;
  std::string identity_;
  std::unique_ptr<Sampler> sampler_;
};

class OpenedDataset final : public Dataset {
 public:
  OpenedDataset(const DataConfig& config, std::vector<Domain> domains)
      : sharing_(config.sharing),
        alpha_(config.dirichlet_alpha),
        eval_tokens_(config.eval_tokens),
        domains_(std::make_shared<const std::vector<Domain>>(std::move(domains))) {}

  int domains() const override { return static_cast<int>(domains_->size()); }
  const std::string& domain(int d) const override { return at(d).name; }
  std::int64_t train_tokens(int d) const override { return at(d).train; }
  std::int64_t held_out_tokens(int d) const override { return at(d).held_out(); }

  std::vector<Batch> HeldOut(int d, std::int64_t sequences, std::int64_t context) const override {
    return HeldOutBatches(at(d), eval_tokens_, sequences, context);
  }

  BaselineLoss Baseline(int d, std::int64_t context) const override {
    const std::vector<Batch> targets = HeldOut(d, 64, context);
    const PairLoss pair = MeasurePairs(*at(d).tokens, at(d).train, at(d).vocabulary, targets);
    return {.unigram = pair.unigram, .bigram = pair.bigram, .entropy = at(d).entropy};
  }

  std::unique_ptr<BatchSource> Source(int node, int nodes, std::int64_t context,
                                      std::uint64_t seed) const override {
    SamplerSetup setup{.sharing = sharing_,
                       .dirichlet_alpha = alpha_,
                       .names = {},
                       .samples = {},
                       .node = node,
                       .nodes = nodes,
                       .seed = seed};
    for (const Domain& d : *domains_) {
      setup.names.push_back(d.name);
      setup.samples.push_back(TrainingSamples(d, context));
      if (setup.samples.back() < 1) {
        throw std::invalid_argument(
            fmt::format("domain '{}': its {} training tokens are less than one sample of {}",
                        d.name, d.train, context + 1));
      }
    }
    return std::make_unique<SampleSource>(domains_, context, setup);
  }

 private:
  const Domain& at(int d) const { return domains_->at(static_cast<std::size_t>(d)); }

  Sharing sharing_;
  double alpha_;
  std::int64_t eval_tokens_;
  Domains domains_;
};

void Validate(const DataConfig& config) {
  const auto fail = [](const std::string& why) { throw std::invalid_argument(why); };
  if (config.domains.empty()) fail("data.domains is empty; at least one domain is needed");
  if (!(config.held_out > 0 && config.held_out < 1)) {
    fail(fmt::format("data.held_out is {}; it is a share between 0 and 1", config.held_out));
  }
  if (config.eval_tokens < 1) {
    fail(fmt::format("data.eval_tokens is {}; at least 1 is needed", config.eval_tokens));
  }
  std::set<std::string> names;
  for (const DomainConfig& domain : config.domains) {
    if (domain.name.empty()) fail("data.domains: a domain has no name");
    if (!names.insert(domain.name).second) {
      fail(fmt::format("data.domains: two domains are named '{}'", domain.name));
    }
  }
}

}  // namespace

std::shared_ptr<const Dataset> OpenDataset(const DataConfig& config, std::int64_t vocabulary,
                                           std::int64_t context) {
  Validate(config);
  std::unique_ptr<Tokenizer> tokenizer;
  std::vector<Domain> domains;
  for (const DomainConfig& domain : config.domains) {
    const bool text = !domain.synthetic && domain.tokens.empty();
    if (text && !tokenizer) tokenizer = MakeTokenizer(config.tokenizer, config.tokenizer_model);
    domains.push_back(OpenDomain(domain, tokenizer.get(), vocabulary, config.held_out, context));
  }
  return std::make_shared<OpenedDataset>(config, std::move(domains));
}

}  // namespace spes::trainer
