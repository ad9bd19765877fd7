#include "trainer/protocol/world_update.h"

#include <fmt/format.h>

#include <cmath>
#include <stdexcept>
#include <utility>

#include "trainer/protocol/round_statistics.h"

namespace spes::trainer {

WorldUpdater::WorldUpdater(const WorldUpdateConfig& config, std::shared_ptr<const BlockTable> table)
    : config_(config), table_(std::move(table)), outer_(table_) {
  if (!config_.gradients) return;
  for (BlockId id = 0; id < table_->size(); ++id) {
    moments_.push_back(
        std::make_shared<AdamMoments>(AdamMoments{table_->Allocate(id), table_->Allocate(id), 0}));
  }
}

WorldUpdate WorldUpdater::Update(const World& before, Reduction::Result reduced, Version version,
                                 std::int64_t step, double alpha) {
  WorldUpdate update;
  update.world = std::move(reduced.world);
  update.source = std::move(reduced.source);
  update.moments = std::move(reduced.moments);
  update.alpha = alpha;
  for (const int source : update.source) {
    update.contributed.push_back(source != Reduction::kUnchanged);
  }
  for (BlockId id = 0; id < table_->size(); ++id) {
    const auto i = static_cast<std::size_t>(id);
    if (!update.contributed[i] || (*table_)[id].kind == BlockKind::kExpert) continue;
    update.shared_square_move +=
        SquaredDistance(table_->dtype(), *before.blocks[i].data, *update.world.blocks[i].data);
  }
  if (config_.gradients) {
    StepGradients(before, version, step, update);
  } else {
    StepOuter(before, version, update);
  }
  Merge(version, update);
  for (BlockId id = 0; id < table_->size(); ++id) {
    const auto i = static_cast<std::size_t>(id);
    // Sums of finite values can overflow.
    if (update.source[i] == Reduction::kComputed &&
        !AllFinite(table_->dtype(), *update.world.blocks[i].data)) {
      throw std::runtime_error(fmt::format("round {}: {} is not finite once reduced", version,
                                           (*table_)[id].parts.front().name));
    }
  }
  Code(before, version, update);
  update.update_norms = UpdateNorms(before, update.world);
  return update;
}

// world ← world − lr (Δ + μ v), Δ = world − mean, v ← μ v + Δ (DiLoCo).
void WorldUpdater::StepOuter(const World& before, Version version, WorldUpdate& update) {
  for (BlockId id = 0; id < table_->size(); ++id) {
    const auto i = static_cast<std::size_t>(id);
    const OuterConfig& outer =
        (*table_)[id].kind == BlockKind::kExpert ? config_.outer_experts : config_.outer_shared;
    if (!outer.nesterov || !update.contributed[i]) continue;
    PublishedBlock& block = update.world.blocks[i];
    block = {version, outer_.Step(outer, id, *before.blocks[i].data, *block.data)};
    update.source[i] = Reduction::kComputed;
  }
}

// The mean gradients stand where the values would: clip their global norm, then AdamW on the world.
void WorldUpdater::StepGradients(const World& before, Version version, std::int64_t step,
                                 WorldUpdate& update) {
  double square = 0;
  for (BlockId id = 0; id < table_->size(); ++id) {
    const auto i = static_cast<std::size_t>(id);
    if (!update.contributed[i]) continue;
    square += SquaredNorm(table_->dtype(), update.world.blocks[i].data->data(),
                          (*table_)[id].buffer_elements);
  }
  const double lr = LearningRate(*config_.gradients, step);
  const double factor = ClipFactor(*config_.gradients, std::sqrt(square));
  for (BlockId id = 0; id < table_->size(); ++id) {
    const auto i = static_cast<std::size_t>(id);
    if (!update.contributed[i]) continue;
    auto value = std::make_shared<Buffer>(before.blocks[i].data->Clone());
    AdamWUpdate(*config_.gradients, lr, factor, table_->dtype(),
                update.world.blocks[i].data->data(), (*table_)[id].buffer_elements, *value,
                *moments_[i]);
    update.world.blocks[i] = {version, std::move(value)};
    update.source[i] = Reduction::kComputed;
  }
}

// w_i ← w_i + α_t · mean_j(w_j − w_i) over the most similar experts j (SPES's merge warm-up).
void WorldUpdater::Merge(Version version, WorldUpdate& update) const {
  if (update.alpha > 0) {
    const World reduced = update.world;
    update.world =
        MergeExperts(reduced, update.alpha, config_.merge, version, &update.similarities);
    for (std::size_t i = 0; i < update.source.size(); ++i) {
      if (update.world.blocks[i].data != reduced.blocks[i].data) {
        update.source[i] = Reduction::kComputed;
      }
    }
  }
  auto& similarities = update.alpha > 0 ? update.merged_similarities : update.similarities;
  for (int layer = 0; layer < table_->layers(); ++layer) {
    similarities.push_back(table_->Expert(layer, 0)
                               ? ExpertSimilarity(update.world, layer, config_.merge.similarity)
                               : std::vector<double>{});
  }
}

// What is published is what the code is read back as.
void WorldUpdater::Code(const World& before, Version version, WorldUpdate& update) {
  update.codes.resize(update.source.size());
  if (!codes()) return;
  const bool lossless = IsLossless(config_.codec);
  for (BlockId id = 0; id < table_->size(); ++id) {
    const auto i = static_cast<std::size_t>(id);
    PublishedBlock& block = update.world.blocks[i];
    if (block.version != version) continue;
    Buffer* residual = residuals_.Of(config_.codec, *table_, id);
    CodedBlock coded = Encode(config_.codec, table_->dtype(), (*table_)[id], block.data,
                              before.blocks[i].data.get(), residual);
    // Whoever reads raw values gets what whoever reads the code has: the shorter one is sent.
    if (static_cast<std::int64_t>(coded.code->size()) < table_->Bytes(id)) {
      update.codes[i] = std::move(coded.code);
    }
    if (lossless) continue;
    block.data = std::move(coded.decoded);
    update.source[i] = Reduction::kComputed;
  }
}

std::int64_t WorldUpdater::StateBytes() const {
  std::int64_t bytes = outer_.StateBytes() + residuals_.Bytes();
  for (const auto& m : moments_) bytes += m->first.bytes() + m->second.bytes();
  return bytes;
}

UpdaterState WorldUpdater::State() const { return {outer_.velocity(), moments_, residuals_.all()}; }

void WorldUpdater::Restore(UpdaterState state) {
  const auto blocks = static_cast<std::size_t>(table_->size());
  bool fits = state.velocity.size() == blocks && state.adam.size() == moments_.size();
  const auto fits_block = [this](std::size_t i, const Buffer& buffer) {
    const auto id = static_cast<BlockId>(i);
    return i < static_cast<std::size_t>(table_->size()) &&
           buffer.bytes() == (*table_)[id].buffer_elements * ElementBytes(table_->dtype());
  };
  for (std::size_t i = 0; fits && i < blocks; ++i) {
    if (state.velocity[i]) fits = fits_block(i, *state.velocity[i]);
  }
  for (std::size_t i = 0; fits && i < state.adam.size(); ++i) {
    fits = state.adam[i] && fits_block(i, state.adam[i]->first) &&
           fits_block(i, state.adam[i]->second);
  }
  for (const auto& [id, buffer] : state.residuals) {
    fits = fits && buffer && fits_block(static_cast<std::size_t>(id), *buffer);
  }
  if (!fits) {
    throw std::invalid_argument(
        "the state to resume from: the optimiser's part is of another model or of other settings");
  }
  outer_.Restore(std::move(state.velocity));
  moments_ = std::move(state.adam);
  residuals_.Restore(std::move(state.residuals));
}

}  // namespace spes::trainer
