#include "trainer/protocol/trust.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <stdexcept>

namespace spes::trainer {

namespace {

// Other nodes without which there is no majority to speak of.
constexpr std::size_t kFewest = 3;
// An update below this share of what its steps could move is never too large: where most nodes'
// experts hardly train, one whose experts do is no liar.
constexpr double kCalm = 0.05;

struct Size {
  double Evidence::*what;
  const char* name;
  bool update;  // and not a count
};
constexpr Size kSizes[] = {{&Evidence::shared, "update of the shared parameters", true},
                           {&Evidence::experts, "update of the experts", true},
                           {&Evidence::tokens, "count of tokens", false}};

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

// Nothing where too few nodes have any.
std::optional<double> MedianOfMany(const std::vector<std::pair<NodeId, double>>& values) {
  std::set<NodeId> nodes;
  std::vector<double> numbers;
  for (const auto& [node, value] : values) {
    nodes.insert(node);
    numbers.push_back(value);
  }
  if (nodes.size() < kFewest) return std::nullopt;
  return Median(std::move(numbers));
}

}  // namespace

Evidence SizesOf(const Offer& offer, std::span<const double> squares, std::span<const double> reach,
                 const BlockTable& table) {
  Evidence sizes;
  double square[2] = {}, elements[2] = {};
  for (std::size_t i = 0; i < offer.blocks.size(); ++i) {
    const BlockSpec& block = table[offer.blocks[i].id];
    const int kind = block.kind == BlockKind::kExpert;
    square[kind] += squares[i] / (reach[i] * reach[i]);
    elements[kind] += static_cast<double>(block.elements);
  }
  if (elements[0] > 0) sizes.shared = std::sqrt(square[0] / elements[0]);
  if (elements[1] > 0) sizes.experts = std::sqrt(square[1] / elements[1]);
  sizes.tokens = static_cast<double>(offer.tokens) / std::max(1, offer.span.steps);
  return sizes;
}

Trust::Trust(const TrustConfig& config) : config_(config) {
  const auto require = [](bool holds, const char* what) {
    if (!holds) throw std::invalid_argument(fmt::format("trust: {}", what));
  };
  require(config.norm_bound == 0 || (config.norm_bound > 1 && std::isfinite(config.norm_bound)),
          "norm_bound is a multiple of the others' median, above 1, or 0");
  require(config.window >= 1, "window is a number of rounds, at least 1");
  require(config.strikes >= 1, "strikes is a number of refusals, at least 1");
  require(config.margin >= 0 && std::isfinite(config.margin), "margin is not negative");
}

Trust::Values Trust::Past(double Evidence::*what, NodeId node) const {
  Values values;
  for (const Sample& sample : samples_) {
    const double value = sample.evidence.*what;
    if (sample.node != node && !std::isnan(value)) values.emplace_back(sample.node, value);
  }
  return values;
}

// Whoever has sent a result of this round, what is refused or waits included: nobody knows better.
Trust::Values Trust::Present(double Evidence::*what, NodeId node) const {
  Values values;
  for (const auto& [other, result] : round_) {
    const double value = result.evidence.*what;
    if (other != node && !std::isnan(value)) values.emplace_back(other, value);
  }
  return values;
}

// What is wrong by the earlier rounds, and with `with_present` by this one too; empty: nothing.
// Without it something is wrong as well where the earlier rounds cannot tell.
std::string Trust::Fault(NodeId node, const Evidence& evidence, bool with_present) const {
  for (const Size& size : kSizes) {
    const double value = evidence.*size.what;
    if (config_.norm_bound == 0 || std::isnan(value)) continue;
    const double least = size.update && config_.step_size ? kCalm : 0;
    std::optional<double> usual = MedianOfMany(Past(size.what, node));
    if (with_present) {
      const auto present = MedianOfMany(Present(size.what, node));
      if (!usual && !present) continue;
      usual = std::max(usual.value_or(0), present.value_or(0));
    }
    if (usual && value <= config_.norm_bound * std::max(*usual, least)) continue;
    return fmt::format("its {} is {:.3g} times what the others' is like; {:g} is the bound",
                       size.name, value / std::max(usual.value_or(0), least), config_.norm_bound);
  }
  if (!config_.held_out || std::isnan(evidence.loss_rise)) return {};
  double bound = config_.margin;
  const auto allow = [&](const std::optional<double>& others) {
    bound = std::max(bound, config_.margin + others.value_or(0));
  };
  allow(MedianOfMany(Past(&Evidence::loss_rise, node)));
  if (with_present) allow(MedianOfMany(Present(&Evidence::loss_rise, node)));
  if (evidence.loss_rise <= bound && std::isfinite(evidence.loss_rise)) return {};
  return fmt::format(
      "with it the held-out loss is {:.3g} nats above the published world's; "
      "{:.3g} is the bound",
      evidence.loss_rise, bound);
}

bool Trust::Takes(NodeId node, const Evidence& evidence) {
  Result& result = round_[node];
  result.evidence = evidence;
  const bool taken = Fault(node, evidence, false).empty();
  result.standing = taken ? Standing::kTaken : Standing::kWaits;
  return taken;
}

void Trust::Refuse(NodeId node, std::string fault) { round_[node].fault = std::move(fault); }

std::vector<Trust::Verdict> Trust::Judge() {
  std::vector<Verdict> verdicts;
  for (auto& [node, result] : round_) {
    if (result.standing != Standing::kWaits) continue;
    std::string fault = Fault(node, result.evidence, true);
    result.standing = fault.empty() ? Standing::kTaken : Standing::kNone;
    if (!fault.empty()) result.fault = fault;
    verdicts.push_back({node, std::move(fault)});
  }
  return verdicts;
}

std::vector<Trust::Verdict> Trust::EndRound(std::int32_t round) {
  const auto old = [&](const auto& each) { return each.round <= round - config_.window; };
  std::erase_if(samples_, old);
  std::erase_if(refusals_, old);
  std::vector<Verdict> quarantined;
  for (auto& [node, result] : round_) {
    if (result.standing == Standing::kTaken) samples_.push_back({round, node, result.evidence});
    if (result.fault.empty()) continue;
    refusals_.push_back({round, node});
    const auto refused =
        std::count_if(refusals_.begin(), refusals_.end(),
                      [node = node](const Refusal& each) { return each.node == node; });
    if (refused < config_.strikes) continue;
    quarantined.push_back({node, fmt::format("refused {} times in {} rounds, the last time because "
                                             "{}",
                                             refused, config_.window, result.fault)});
  }
  round_.clear();
  return quarantined;
}

// Samples, then refusals, each after their number.
std::vector<double> Trust::State() const {
  std::vector<double> state{static_cast<double>(samples_.size())};
  for (const auto& [round, node, e] : samples_) {
    state.insert(state.end(), {static_cast<double>(round), static_cast<double>(node), e.shared,
                               e.experts, e.tokens, e.loss_rise});
  }
  state.push_back(static_cast<double>(refusals_.size()));
  for (const auto& [round, node] : refusals_) {
    state.insert(state.end(), {static_cast<double>(round), static_cast<double>(node)});
  }
  return state;
}

void Trust::Restore(std::span<const double> state) {
  std::size_t at = 0;
  const auto next = [&] {
    if (at == state.size()) {
      throw std::invalid_argument(
          "the state to resume from: what it knows of the nodes is cut off");
    }
    return state[at++];
  };
  // A whole number that a double and an int32 hold.
  const auto whole = [&] {
    const double x = next();
    if (!(x >= 0 && x <= 0x7fffffff) || x != std::floor(x)) {
      throw std::invalid_argument(
          "the state to resume from: what it knows of the nodes makes no sense");
    }
    return static_cast<std::int32_t>(x);
  };
  samples_.clear();
  refusals_.clear();
  round_.clear();
  for (std::int32_t n = whole(); n > 0; --n) {
    Sample sample{whole(), whole(), {}};
    for (double Evidence::*what :
         {&Evidence::shared, &Evidence::experts, &Evidence::tokens, &Evidence::loss_rise}) {
      sample.evidence.*what = next();
    }
    samples_.push_back(sample);
  }
  for (std::int32_t n = whole(); n > 0; --n) refusals_.push_back({whole(), whole()});
  if (at != state.size()) {
    throw std::invalid_argument("the state to resume from: it knows too much of the nodes");
  }
}

}  // namespace spes::trainer
