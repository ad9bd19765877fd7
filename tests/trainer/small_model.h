// A small model and a node that trains some of its experts on tokens from nowhere.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "trainer/data/keyed_random.h"
#include "trainer/model/initial_world.h"
#include "trainer/model_node.h"

namespace spes::trainer {

// Tokens as a function of (seed, position).
class KeyedTokens final : public BatchSource {
 public:
  KeyedTokens(std::uint64_t seed, std::int64_t vocabulary, std::int64_t context)
      : seed_(seed), vocabulary_(vocabulary), context_(context) {}
  void Next(std::int64_t sequences, Batch& out) override {
    out.sequences = sequences;
    out.context = context_;
    out.tokens.resize(static_cast<std::size_t>(sequences * (context_ + 1)));
    for (std::int32_t& token : out.tokens) {
      token = static_cast<std::int32_t>(Key(seed_, position_++) %
                                        static_cast<std::uint64_t>(vocabulary_));
    }
  }
  std::string Position() const override { return std::to_string(position_); }
  void Seek(const std::string& position) override { position_ = std::stoull(position); }

 private:
  std::uint64_t seed_;
  std::int64_t vocabulary_, context_;
  std::uint64_t position_ = 0;
};

inline std::vector<NodeBlock> ReadTrainable(const Node& node) {
  return node.Read(node.trainable(), false);
}

inline std::vector<BlockId> SharedAndExperts(const BlockTable& table, int first, int count) {
  std::vector<BlockId> ids;
  for (BlockId id = 0; id < table.size(); ++id) {
    const int e = table[id].expert;
    if (e < 0 || (e >= first && e < first + count)) ids.push_back(id);
  }
  return ids;
}

struct SmallModel {
  ModelNodeConfig config{.model = {.vocabulary = 40,
                                   .layers = 2,
                                   .width = 32,
                                   .heads = 2,
                                   .kv_heads = 1,
                                   .experts = 4,
                                   .experts_per_token = 2,
                                   .expert_width = 24},
                         .optimizer = {.warmup_steps = 3, .decay_steps = 50},
                         .sequences = 4,
                         .context = 16};
  World world;

  explicit SmallModel(const std::function<void(ModelNodeConfig&)>& change = {}) {
    InitLibTorch();
    if (change) change(config);
    world = MakeInitialWorld(config.model, MakeBlockTable(config.model), 1);
  }
  std::unique_ptr<Node> Make(int expert, int count = 1, std::uint64_t seed = 9) const {
    return MakeModelNode(
        config, world, SharedAndExperts(*world.table, expert, count),
        std::make_unique<KeyedTokens>(seed, config.model.vocabulary, config.context));
  }
};

inline const std::atomic<bool> kGo = false;

}  // namespace spes::trainer
