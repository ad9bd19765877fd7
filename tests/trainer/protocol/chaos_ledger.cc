#include "tests/trainer/protocol/chaos_ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "trainer/sync/block_values.h"

namespace spes::trainer {

ChaosLedger::ChaosLedger(const ChaosSettings& settings, const World& world)
    : settings_(settings),
      table_(settings.table),
      schedule_(settings.coordinator.schedule, *table_),
      worlds_{world},
      adopted_(static_cast<std::size_t>(settings.nodes)) {}

bool ChaosLedger::Same(BlockId id, const Buffer& a, const Buffer& b) const {
  return SameValues((*table_)[id], table_->dtype(), a, b);
}

std::int32_t ChaosLedger::RoundOf(std::int64_t step) const {
  for (std::int32_t round = 1; round <= schedule_.rounds(); ++round) {
    if (step <= schedule_.round(round).last_step()) return round;
  }
  return 0;
}

void ChaosLedger::OnCoordinatorBegins() {
  // What the one before had taken and not written down counts for nothing.
  counted_.clear();
}

void ChaosLedger::OnNodeBegins(NodeId node) { adopted_[static_cast<std::size_t>(node)].clear(); }

// The coordinator says nothing of a round that is not written down.
void ChaosLedger::OnSent(NodeId to, const Message& message) {
  if (!journalled_) return;  // nothing is
  std::int32_t of = 0;
  if (const auto* admit = std::get_if<Admit>(&message)) of = admit->order.span.round - 1;
  if (const auto* update = std::get_if<Update>(&message)) of = update->version;
  if (of > rounds()) wrong(fmt::format("node {} is told of round {} too early", to, of));
}

void ChaosLedger::OnReceived(NodeId node, const Message& message) {
  const std::vector<SentBlock>* blocks = nullptr;
  if (const auto* admit = std::get_if<Admit>(&message)) blocks = &admit->blocks;
  if (const auto* update = std::get_if<Update>(&message)) blocks = &update->blocks;
  if (!blocks) return;
  for (const SentBlock& block : *blocks) {
    const auto i = static_cast<std::size_t>(block.id);
    if (block.version > rounds()) continue;  // said above
    const PublishedBlock& published = worlds_[static_cast<std::size_t>(block.version)].blocks[i];
    if (published.version != block.version ||
        (block.data && !Same(block.id, *published.data, *block.data))) {
      wrong(fmt::format("node {} is sent another block {} than version {}", node, block.id,
                        block.version));
    }
  }
}

void ChaosLedger::OnAdopts(NodeId node, const NodeBlock& block) {
  const auto i = static_cast<std::size_t>(block.id);
  for (std::int32_t round = rounds(); round >= 0; --round) {
    const PublishedBlock& published = worlds_[static_cast<std::size_t>(round)].blocks[i];
    if (!Same(block.id, *published.data, *block.data)) continue;
    Version& last = adopted_[static_cast<std::size_t>(node)].try_emplace(block.id, 0).first->second;
    if (published.version < last) {
      wrong(fmt::format("node {} adopts version {} of block {} after {}", node, published.version,
                        block.id, last));
    }
    last = published.version;
    return;
  }
  wrong(fmt::format("node {} adopts a value of block {} that was never published", node, block.id));
}

// Whoever trains a round does so from the world before it.
void ChaosLedger::OnTrains(NodeId node, std::int64_t first_step, const ChaosNode& state) {
  const std::int32_t round = RoundOf(first_step);
  // Steps ahead are from the world before that one.
  if (settings_.coordinator.schedule.overlap > 0 &&
      schedule_.round(round).first_step == first_step) {
    return;
  }
  if (round - 1 > rounds()) {
    return wrong(fmt::format("node {} trains round {} before its time", node, round));
  }
  const World& world = worlds_[static_cast<std::size_t>(round - 1)];
  const std::vector<BlockId>& own = state.trainable();
  for (BlockId id = 0; id < table_->size(); ++id) {
    if (!settings_.AdoptsAll() && std::binary_search(own.begin(), own.end(), id)) continue;
    if (Same(id, state.Value(id), *world.blocks[static_cast<std::size_t>(id)].data)) continue;
    wrong(fmt::format("node {} trains round {} with another block {} than was published", node,
                      round, id));
  }
}

void ChaosLedger::OnCounted(const analysis::StepRecord& step) {
  counted_.emplace(step.node, step.round);
}

void ChaosLedger::OnJournalled(const CoordinatorState& state) {
  journalled_ = true;
  if (state.round == 0) return;
  if (state.round != rounds() + 1) {
    wrong(fmt::format("round {} is written down after round {}", state.round, rounds()));
  }
  Explain(state.round, state.world);
}

void ChaosLedger::OnPublished(const PublishedRound& published) {
  if (!journalled_ && published.round > 0) return Explain(published.round, published.world);
  if (published.round > rounds()) {
    return wrong(fmt::format("round {} is published before it is written down", published.round));
  }
  if (WorldHash(published.world) != WorldHash(worlds_[static_cast<std::size_t>(published.round)])) {
    wrong(fmt::format("round {} is published with another world than it had", published.round));
  }
}

// Round `round` has this world: it must be what its members' results make of the one before.
void ChaosLedger::Explain(std::int32_t round, const World& published) {
  World world = worlds_.back();
  std::set<BlockId> contributed;
  for (auto& [id, from] : Contributions(round)) {
    const auto& rules = settings_.coordinator.reduction;
    const bool expert = (*table_)[id].kind == BlockKind::kExpert;
    world.blocks[static_cast<std::size_t>(id)] = {
        round, Reduced(expert ? rules.experts : rules.shared, from)};
    contributed.insert(id);
  }
  Step(round, world, contributed);
  const MergeConfig& merge = settings_.coordinator.update.merge;
  const RoundPlan& plan = schedule_.round(round);
  const double alpha = schedule_.AllExpertsDue(round)
                           ? MergeAlphaOfRound(merge, plan.first_step - 1, plan.last_step())
                           : 0;
  if (alpha > 0) world = MergeExperts(world, alpha, merge, round);
  Code(round, world);
  for (BlockId id = 0; id < table_->size(); ++id) {
    const auto i = static_cast<std::size_t>(id);
    if (world.blocks[i].version != published.blocks[i].version ||
        !Same(id, *world.blocks[i].data, *published.blocks[i].data)) {
      wrong(fmt::format("block {} of round {} is not what its members make it", id, round));
    }
  }
  worlds_.push_back(published);
}

std::map<BlockId, std::vector<ChaosLedger::Contribution>> ChaosLedger::Contributions(
    std::int32_t round) {
  std::map<BlockId, std::vector<Contribution>> contributions;
  if (counted_.empty()) wrong(fmt::format("round {} has no member", round));
  for (const auto& [node, of] : std::exchange(counted_, {})) {  // in node order
    if (!settled_.emplace(node, of).second) {
      wrong(fmt::format("the result of node {} of round {} counts twice", node, of));
    }
    const auto found = offers_.find({node, of});
    if (found == offers_.end()) {
      wrong(fmt::format("a result of node {} of round {} counts that it never sent", node, of));
      continue;
    }
    const Offer& offer = found->second;
    const double late = round - of;
    if (late != 0 && settings_.coordinator.late == LateRule::kDrop) {
      wrong(fmt::format("a result of round {} counts in round {}", of, round));
    }
    const double factor = std::pow(1 + late, -settings_.coordinator.staleness_power);
    for (const OfferedBlock& block : offer.blocks) {
      contributions[block.id].push_back(
          {node, block.data, static_cast<double>(offer.tokens), factor});
    }
  }
  return contributions;
}

SharedBuffer ChaosLedger::Reduced(const ReductionRule& rule,
                                  const std::vector<Contribution>& from) const {
  if (from.size() == 1 || rule.kind == ReductionKind::kOwner) return from.front().data;
  auto result = std::make_shared<Buffer>(from.front().data->bytes());
  const std::span<double> to = result->as<double>();
  const std::size_t n = from.size();
  std::size_t cut = (n - 1) / 2;
  if (rule.kind == ReductionKind::kTrimmedMean) {
    cut = std::min(cut, static_cast<std::size_t>(rule.trim * static_cast<double>(n)));
  }
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (IsRobust(rule.kind)) {
      std::vector<double> values;
      for (const Contribution& each : from) values.push_back(each.data->as<double>()[i]);
      std::sort(values.begin(), values.end());
      for (std::size_t k = cut; k < n - cut; ++k) to[i] += values[k];
      to[i] /= static_cast<double>(n - 2 * cut);
      continue;
    }
    double weights = 0;
    for (const Contribution& each : from) {
      const double weight =
          each.factor * (rule.kind == ReductionKind::kTokenMean ? each.weight : 1);
      to[i] += weight * each.data->as<double>()[i];
      weights += weight;
    }
    to[i] /= weights;
  }
  return result;
}

// The optimiser of the world, on what has come.
void ChaosLedger::Step(std::int32_t round, World& world, const std::set<BlockId>& contributed) {
  const WorldUpdateConfig& update = settings_.coordinator.update;
  double square = 0;
  for (const BlockId id : contributed) {
    square += SquaredNorm(table_->dtype(), world.blocks[static_cast<std::size_t>(id)].data->data(),
                          (*table_)[id].buffer_elements);
  }
  for (const BlockId id : contributed) {
    const auto i = static_cast<std::size_t>(id);
    const Buffer& before = *worlds_.back().blocks[i].data;
    const SharedBuffer mean = world.blocks[i].data;
    auto stepped = std::make_shared<Buffer>(before.Clone());
    if (update.gradients) {
      const std::int64_t step = schedule_.round(round).last_step();
      auto moments =
          adam_.try_emplace(id, AdamMoments{table_->Allocate(id), table_->Allocate(id), 0}).first;
      AdamWUpdate(*update.gradients, LearningRate(*update.gradients, step),
                  ClipFactor(*update.gradients, std::sqrt(square)), table_->dtype(), mean->data(),
                  (*table_)[id].buffer_elements, *stepped, moments->second);
      world.blocks[i].data = stepped;
      continue;
    }
    const OuterConfig& outer =
        (*table_)[id].kind == BlockKind::kExpert ? update.outer_experts : update.outer_shared;
    if (!outer.nesterov) continue;
    std::vector<double>& v = velocity_[id];
    v.resize(before.as<double>().size());
    for (std::size_t k = 0; k < v.size(); ++k) {
      const double w = before.as<double>()[k], delta = w - mean->as<double>()[k];
      v[k] = outer.momentum * v[k] + delta;
      stepped->as<double>()[k] = w - outer.lr * (delta + outer.momentum * v[k]);
    }
    world.blocks[i].data = stepped;
  }
}

// What is published is what the code is read back as.
void ChaosLedger::Code(std::int32_t round, World& world) {
  const CodecConfig& codec = settings_.coordinator.update.codec;
  if (IsPlain(codec)) return;
  for (BlockId id = 0; id < table_->size(); ++id) {
    const auto i = static_cast<std::size_t>(id);
    PublishedBlock& block = world.blocks[i];
    if (block.version != round) continue;
    const SharedBuffer base = worlds_.back().blocks[i].data;
    const CodedBlock coded = Encode(codec, table_->dtype(), (*table_)[id], block.data, base.get(),
                                    residuals_.Of(codec, *table_, id));
    block.data = coded.decoded;
  }
}

}  // namespace spes::trainer
