#include "trainer/data/domain.h"

#include <fmt/format.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <stdexcept>

#include "trainer/data/synthetic.h"
#include "trainer/data/text_file.h"

namespace spes::trainer {
namespace {

[[noreturn]] void Fail(const std::string& domain, const std::string& why) {
  throw std::invalid_argument(fmt::format("domain '{}': {}", domain, why));
}

void CheckSource(const DomainConfig& config) {
  const int sources =
      (!config.files.empty() || !config.corpus.empty()) + !config.tokens.empty() + config.synthetic;
  if (sources != 1) {
    Fail(config.name,
         fmt::format("has {} of corpus, files, tokens and synthetic; exactly one says where the "
                     "data comes from",
                     sources == 0 ? "none" : "several"));
  }
  if (!config.corpus.empty() && config.files.empty()) {
    Fail(config.name, fmt::format("the corpus '{}' has no files", config.corpus));
  }
  if (config.limit_bytes < 0) {
    Fail(config.name, fmt::format("limit_bytes is {}; 0 means all", config.limit_bytes));
  }
  if (!config.synthetic && config.synthetic_tokens != 0) {
    Fail(config.name, "synthetic_tokens is set, but the domain is not synthetic");
  }
  if (config.synthetic && config.limit_bytes != 0) {
    Fail(config.name, "limit_bytes has no meaning for a synthetic domain; set synthetic_tokens");
  }
  if (config.synthetic && config.synthetic_tokens < 1) {
    Fail(config.name, fmt::format("synthetic_tokens is {}; it is the length of the text, 1 or more",
                                  config.synthetic_tokens));
  }
}

void OpenSynthetic(const DomainConfig& config, std::int64_t vocabulary, Domain& domain) {
  // The name is the seed: each domain its own language, the same in every run.
  const SyntheticLanguage language(SyntheticLanguage::SymbolsFor(vocabulary),
                                   XXH3_64bits(config.name.data(), config.name.size()));
  domain.tokens =
      std::make_unique<MemoryTokens<std::string>>(language.Sample(config.synthetic_tokens));
  domain.vocabulary = language.symbols();
  domain.entropy = language.EntropyRate();
}

void OpenTokens(const DomainConfig& config, std::int64_t vocabulary, Domain& domain) {
  const std::int64_t element = config.token_type == TokenType::kUint16 ? 2 : 4;
  if (config.limit_bytes % element != 0) {
    Fail(config.name, fmt::format("limit_bytes is {}, no multiple of the {} bytes of a token id",
                                  config.limit_bytes, element));
  }
  domain.tokens =
      OpenTokenFiles(config.tokens, config.token_type, vocabulary, config.limit_bytes / element);
  domain.vocabulary = vocabulary;
}

void OpenText(const DomainConfig& config, const Tokenizer& tokenizer, std::int64_t vocabulary,
              Domain& domain) {
  if (tokenizer.vocabulary() > vocabulary) {
    Fail(config.name, fmt::format("the tokenizer has {} tokens, the model's vocabulary {}; set "
                                  "model.vocabulary to {} or more",
                                  tokenizer.vocabulary(), vocabulary, tokenizer.vocabulary()));
  }
  domain.tokens = tokenizer.Encode(ReadText(config.files, config.limit_bytes));
  domain.vocabulary = tokenizer.vocabulary();
}

void Split(double share, std::int64_t context, Domain& domain) {
  const std::int64_t size = domain.tokens->size();
  const auto held_out = static_cast<std::int64_t>(static_cast<double>(size) * share);
  domain.train = size - held_out;
  const auto check = [&](const char* part, std::int64_t tokens, const char* remedy) {
    if (tokens >= context + 1) return;
    Fail(domain.name, fmt::format("{} of its {} tokens are {}, one sample is {} (context + 1); {}",
                                  tokens, size, part, context + 1, remedy));
  };
  check("held out", held_out, "more text, a larger data.held_out or a shorter context would fit");
  check("left for training", domain.train,
        "more text, a smaller data.held_out or a shorter context would fit");
}

}  // namespace

Domain OpenDomain(const DomainConfig& config, const Tokenizer* tokenizer, std::int64_t vocabulary,
                  double held_out_share, std::int64_t context) {
  CheckSource(config);
  Domain domain;
  domain.name = config.name;
  try {
    if (config.synthetic) {
      OpenSynthetic(config, vocabulary, domain);
    } else if (!config.tokens.empty()) {
      OpenTokens(config, vocabulary, domain);
    } else {
      OpenText(config, *tokenizer, vocabulary, domain);
    }
  } catch (const std::invalid_argument& e) {
    const std::string message = e.what();
    if (message.starts_with("domain '")) throw;
    Fail(config.name, message);
  }
  Split(held_out_share, context, domain);
  return domain;
}

std::int64_t TrainingSamples(const Domain& domain, std::int64_t context) {
  return (domain.train - 1) / context;
}

std::vector<Batch> HeldOutBatches(const Domain& domain, std::int64_t eval_tokens,
                                  std::int64_t sequences, std::int64_t context) {
  const std::int64_t room = domain.held_out() - (context + 1);  // of the last window's start
  if (room < 0) {
    Fail(domain.name, fmt::format("its {} held-out tokens are less than one sample of {}",
                                  domain.held_out(), context + 1));
  }
  const std::int64_t wanted = std::max<std::int64_t>(1, eval_tokens / context);
  const std::int64_t windows = std::min(wanted, room / context + 1);
  std::vector<Batch> batches;
  for (std::int64_t first = 0; first < windows; first += sequences) {
    Batch& batch = batches.emplace_back();
    batch.sequences = std::min(sequences, windows - first);
    batch.context = context;
    batch.tokens.resize(static_cast<std::size_t>(batch.sequences * (context + 1)));
    for (std::int64_t s = 0; s < batch.sequences; ++s) {
      // Fits: windows ≤ 2⁶³ / room for any text in memory or on a disk.
      const std::int64_t start = windows == 1 ? 0 : (first + s) * room / (windows - 1);
      domain.tokens->Read(domain.train + start, context + 1,
                          batch.tokens.data() + s * (context + 1));
    }
  }
  return batches;
}

}  // namespace spes::trainer
