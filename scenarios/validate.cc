#include "scenarios/validate.h"

#include <fmt/format.h>

#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

#include "scenarios/catalogue.h"
#include "scenarios/exchange.h"
#include "scenarios/faults.h"
#include "scenarios/sync_builder.h"
#include "scenarios/topology_builder.h"
#include "scenarios/validate_network.h"
#include "scenarios/validate_transport.h"
#include "trainer/devices.h"

namespace spes::scenarios {

namespace {

constexpr std::int64_t kMaxExpertBlocks = 1'000'000;
constexpr std::int64_t kMaxNodes = 100'000;

void ValidateNodes(const Scenario& s, const Origins& origins) {
  std::int64_t sum = 0;
  for (const NodeGroup& group : s.nodes.groups) sum += group.count;
  const std::int64_t count = s.nodes.count;
  if (count > 0 && !s.nodes.groups.empty() && sum != count) {
    origins.Fail(
        "nodes.count",
        fmt::format("is {}, but the groups hold {} nodes; leave one of them out", count, sum));
  }
  if (count == 0 && sum == 0) {
    origins.Fail("nodes.count", "there are no nodes; give nodes.count or nodes.groups");
  }
  if (sum > kMaxNodes) {
    origins.Fail("nodes.groups",
                 fmt::format("hold {} nodes; at most {} are allowed", sum, kMaxNodes));
  }
  if (s.nodes.only_wait && s.nodes.compute.kind == trainer::ComputeCost::kMeasured) {
    origins.Fail("nodes.only_wait",
                 "leaves nothing to measure; nodes.compute.kind must be fixed or flops");
  }
  const int nodes = NodeCount(s);
  if (s.sync.quorum > nodes) {
    origins.Fail("sync.quorum",
                 fmt::format("is {}, but there are only {} nodes", s.sync.quorum, nodes));
  }
}

void ValidateTraining(const TrainingSection& t, int experts, const Origins& origins) {
  if (t.micro_sequences > 0 && t.sequences % t.micro_sequences != 0) {
    std::int64_t below = t.micro_sequences, above = t.micro_sequences;
    while (t.sequences % below != 0) --below;
    while (above < t.sequences && t.sequences % above != 0) ++above;
    if (above > t.sequences) above = t.sequences;
    origins.Fail(
        "training.micro_sequences",
        below == above || t.sequences % above != 0
            ? fmt::format("is {}, which does not divide training.sequences, {}; {} would",
                          t.micro_sequences, t.sequences, below)
            : fmt::format("is {}, which does not divide training.sequences, {}; {} or {} would",
                          t.micro_sequences, t.sequences, below, above));
  }
  if (t.candidates > 1 && experts == 0) {
    origins.Fail(
        "training.candidates",
        fmt::format("is {}, but the model has no experts to choose them for", t.candidates));
  }
  if ((t.routing_bias != 0) != (t.routing_bias_length > 0)) {
    origins.Fail(t.routing_bias != 0 ? "training.routing_bias" : "training.routing_bias_length",
                 "has an effect only where routing_bias and routing_bias_length are both given");
  }
  if (t.optimizer.decay_steps > 0 && t.optimizer.decay_steps < t.optimizer.warmup_steps) {
    origins.Fail("training.decay_steps",
                 fmt::format("is {}, before the end of the warm-up at step {}",
                             t.optimizer.decay_steps, t.optimizer.warmup_steps));
  }
}

void ValidateDevices(const Scenario& s, const Origins& origins) {
  if (s.devices.empty()) origins.Fail("devices", "there is none; cpu is always there");
  for (const std::string& device : s.devices) {
    origins.Blame("devices", "", [&] { trainer::ParseDevice(device); });
  }
  const int own = s.nodes.devices_per_node;
  origins.Blame("nodes.devices_per_node", "devices_per_node ",
                [&] { trainer::DevicesOfNode(s.devices, own, 0); });
  const std::int64_t rows = s.training.micro_sequences;
  const std::int64_t microbatches = rows > 0 ? s.training.sequences / rows : 1;
  if (own > microbatches) {
    origins.Fail("nodes.devices_per_node",
                 fmt::format("is {}, but a step has {} microbatch{} to share out; give a smaller "
                             "training.micro_sequences than {}",
                             own, microbatches, microbatches == 1 ? "" : "es",
                             s.training.sequences / microbatches));
  }
  if (s.training.compute_dtype == trainer::ComputeType::kBFloat16 &&
      s.model.dtype != trainer::DType::kFloat32) {
    origins.Fail("training.compute_dtype",
                 "is bfloat16, whose parameters are float32; model.dtype is float64");
  }
}

void ValidateDomain(const trainer::DomainConfig& d, const std::string& path,
                    const Origins& origins) {
  const int kinds = !d.corpus.empty() + !d.files.empty() + !d.tokens.empty() + d.synthetic;
  if (kinds != 1) {
    origins.Fail(path, fmt::format("has {} of corpus, files, tokens and synthetic; exactly one "
                                   "says where the text comes from",
                                   kinds == 0 ? "none" : "more than one"));
  }
  if (d.name.empty()) origins.Fail(path, "has no name");
  if (d.synthetic && d.synthetic_tokens == 0) {
    origins.Fail(path, "a synthetic domain needs its length, synthetic_tokens");
  }
  if (!d.synthetic && d.synthetic_tokens > 0) {
    origins.Fail(Join(path, "synthetic_tokens"), "is of a synthetic domain, which this is not");
  }
  if (d.tokens.empty() && d.token_type != trainer::DomainConfig{}.token_type) {
    origins.Fail(Join(path, "token_type"), "is of the files in `tokens`, which is not given");
  }
  if (d.synthetic && d.limit_bytes > 0) {
    origins.Fail(Join(path, "limit_bytes"), "has no meaning for a synthetic domain");
  }
}

void ValidateData(const Scenario& s, const Origins& origins) {
  const trainer::DataConfig& data = s.data;
  if (data.domains.empty()) {
    origins.Fail("data.domains", "there is nothing to train on; name at least one domain");
  }
  std::set<std::string> names;
  for (std::size_t i = 0; i < data.domains.size(); ++i) {
    const std::string path = fmt::format("data.domains.{}", i);
    const trainer::DomainConfig& domain = data.domains[i];
    ValidateDomain(domain, path, origins);
    if (!names.insert(domain.name).second) {
      origins.Fail(path, fmt::format("another domain is called '{}' as well", domain.name));
    }
    if (!domain.corpus.empty()) {
      origins.Blame(path, "", [&] { FindCorpus(InstalledCatalogue(), domain.corpus); });
    }
  }
  const bool pieces = data.tokenizer == trainer::TokenizerKind::kSentencePiece;
  if (pieces && data.tokenizer_model.empty()) {
    origins.Fail("data.tokenizer", "sentencepiece needs the file data.tokenizer_model");
  }
  if (!pieces && !data.tokenizer_model.empty()) {
    origins.Fail("data.tokenizer_model", "is for data.tokenizer: sentencepiece");
  }
  bool text = false;
  for (const trainer::DomainConfig& d : data.domains) text |= !d.corpus.empty() || !d.files.empty();
  if (!pieces && text && s.model.vocabulary < 256) {
    origins.Fail("model.vocabulary",
                 fmt::format("is {}, but bytes as tokens need at least 256", s.model.vocabulary));
  }
}

}  // namespace

void ValidateModel(const trainer::ModelConfig& model, const std::string& path,
                   const Origins& origins) {
  const std::int64_t blocks = std::int64_t{model.layers} * model.experts;
  if (blocks > kMaxExpertBlocks) {
    origins.Fail(Join(path, "experts"), fmt::format("{} in each of {} layers are more than {}",
                                                    model.experts, model.layers, kMaxExpertBlocks));
  }
  try {
    trainer::Validate(model);
  } catch (const std::invalid_argument& e) {
    // "model: heads is …": the key is the second word.
    const std::string why = e.what();
    const std::size_t begin = why.find(' ') + 1;
    const std::string key = why.substr(begin, why.find(' ', begin) - begin);
    const std::string where = origins.Where(Join(path, key));
    throw std::invalid_argument(where.empty() ? why : fmt::format("{}: {}", where, why));
  }
}

void Validate(const Scenario& scenario, const Origins& origins) {
  ValidateModel(scenario.model, "model", origins);
  ValidateTraining(scenario.training, scenario.model.experts, origins);
  ValidateNodes(scenario, origins);
  ValidateDevices(scenario, origins);
  ValidateSync(scenario, origins);
  ValidateData(scenario, origins);
  ValidateTransport(scenario, origins);
  ValidateExchange(scenario, origins);
  ValidateNetwork(scenario, origins);
  ValidateFaults(scenario, origins);
}

}  // namespace spes::scenarios
