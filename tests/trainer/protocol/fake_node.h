// A node without a model: "training" adds a known amount to its blocks.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trainer/node.h"
#include "trainer/node_state.h"
#include "trainer/sync/allocation.h"

namespace spes::trainer {

// `layers` layers of one shared block of 5 elements and `experts` experts of 3 × 4 elements;
// float64.
inline std::shared_ptr<const BlockTable> MakeTinyTable(int layers, int experts) {
  std::vector<BlockSpec> blocks;
  for (int l = 0; l < layers; ++l) {
    const std::string layer = "layers." + std::to_string(l) + ".";
    blocks.push_back(MakeBlock(DType::kFloat64, BlockKind::kShared, l, -1, {{layer + "q", {5}}}));
    for (int e = 0; e < experts; ++e) {
      const std::string expert = layer + "experts." + std::to_string(e) + ".";
      blocks.push_back(
          MakeBlock(DType::kFloat64, BlockKind::kExpert, l, e,
                    {{expert + "w1", {4}}, {expert + "v1", {4}}, {expert + "w2", {4}}}));
    }
  }
  return std::make_shared<BlockTable>(DType::kFloat64, std::move(blocks));
}

// Every element of block b is `start + b`.
inline World MakeTinyWorld(const std::shared_ptr<const BlockTable>& table, double start = 1) {
  World world{table, {}};
  for (BlockId id = 0; id < table->size(); ++id) {
    auto buffer = std::make_shared<Buffer>(table->Allocate(id));
    for (const BlockPart& part : (*table)[id].parts) {
      for (std::int64_t i = 0; i < part.elements; ++i) {
        buffer->as<double>()[static_cast<std::size_t>(part.offset + i)] = start + id;
      }
    }
    world.blocks.push_back({0, std::move(buffer)});
  }
  return world;
}

class FakeNode final : public Node {
 public:
  // Each step adds `delta` to every element of the trainable blocks.
  FakeNode(const World& world, std::vector<BlockId> trainable, double delta)
      : table_(world.table), trainable_(std::move(trainable)), delta_(delta) {
    for (const PublishedBlock& block : world.blocks) values_.push_back(block.data);
  }

  const std::vector<BlockId>& trainable() const override { return trainable_; }

  TrainResult TrainSteps(std::int64_t first_step, int steps, const std::atomic<bool>&) override {
    TrainResult result;
    for (int i = 0; i < steps; ++i) {
      Change([this](double& x) { x += delta_; });
      analysis::StepRecord record;
      record.step = first_step + i;
      record.tokens = tokens_per_step;
      record.ce = 2;
      result.steps.push_back(record);
      trained_steps.push_back(record.step);
    }
    result.routing.routed = routed;
    result.routing.entropy_sum.assign(routed.size(), 0);
    return result;
  }

  void SkipSteps(std::int64_t steps) override { skipped += steps; }

  void SetTrainable(std::vector<BlockId> ids, bool) override { trainable_ = std::move(ids); }

  // Moments: the first of all steps that this node has trained, the second twice that.
  std::vector<NodeBlock> Read(std::span<const BlockId> ids, bool with_moments) const override {
    std::vector<NodeBlock> blocks;
    for (const BlockId id : ids) {
      blocks.push_back({id, std::make_shared<Buffer>(Value(id)->Clone())});
      if (!with_moments) continue;
      const auto trained = static_cast<double>(trained_steps.size());
      blocks.back().moments = std::make_shared<BlockMoments>(
          BlockMoments{Filled(id, trained), Filled(id, 2 * trained),
                       static_cast<std::int64_t>(trained_steps.size())});
    }
    return blocks;
  }

  using Node::Apply;
  void Apply(std::span<const NodeBlock> blocks, double keep) override {
    for (const NodeBlock& block : blocks) {
      SharedBuffer& value = values_[static_cast<std::size_t>(block.id)];
      if (keep > 0 && std::binary_search(trainable_.begin(), trainable_.end(), block.id)) {
        auto mixed = std::make_shared<Buffer>(block.data->Clone());
        for (std::size_t i = 0; i < mixed->as<double>().size(); ++i) {
          mixed->as<double>()[i] =
              keep * value->as<double>()[i] + (1 - keep) * mixed->as<double>()[i];
        }
        value = std::move(mixed);
      } else {
        value = block.data;
      }
      if (block.moments) moments[block.id] = block.moments;
      applied.push_back(block.id);
    }
  }

  void ResetOptimizer(std::span<const BlockId> ids) override {
    ++resets;
    reset.assign(ids.begin(), ids.end());
  }
  // The values that it trains, and how many steps it has trained.
  StateBytes Save() const override {
    StateWriter out;
    out.Number<std::uint64_t>(trained_steps.size());
    for (const BlockId id : trainable_) {
      const Buffer& value = *Value(id);
      out.Bytes(value.as<std::byte>());
    }
    return out.Finish();
  }
  void Load(std::string_view state) override {
    StateReader in(state);
    trained_steps.resize(in.Number<std::uint64_t>());
    for (const BlockId id : trainable_) {
      auto value = std::make_shared<Buffer>(table_->Allocate(id));
      const std::string_view bytes = in.Bytes();
      std::copy_n(bytes.data(), bytes.size(), reinterpret_cast<char*>(value->data()));
      values_[static_cast<std::size_t>(id)] = std::move(value);
    }
    in.ExpectEnd();
  }

  // Sets every element of a trainable block.
  template <class F>
  void Change(F f) {
    for (const BlockId id : trainable_) {
      auto changed = std::make_shared<Buffer>(Value(id)->Clone());
      for (const BlockPart& part : (*table_)[id].parts) {
        for (std::int64_t i = 0; i < part.elements; ++i) {
          f(changed->as<double>()[static_cast<std::size_t>(part.offset + i)]);
        }
      }
      values_[static_cast<std::size_t>(id)] = std::move(changed);
    }
  }
  SharedBuffer Filled(BlockId id, double x) const {
    auto buffer = std::make_shared<Buffer>(table_->Allocate(id));
    for (const BlockPart& part : (*table_)[id].parts) {
      std::fill_n(buffer->as<double>().begin() + part.offset, part.elements, x);
    }
    return buffer;
  }
  SharedBuffer Value(BlockId id) const { return values_[static_cast<std::size_t>(id)]; }
  double First(BlockId id) const { return Value(id)->as<double>()[0]; }

  std::vector<std::int64_t> trained_steps;
  std::vector<BlockId> applied;
  std::map<BlockId, SharedMoments> moments;  // as they were applied
  int resets = 0;
  std::int64_t skipped = 0;
  std::vector<BlockId> reset;  // the last time
  std::int64_t tokens_per_step = 10;
  std::vector<std::vector<std::int64_t>> routed;  // [layer][expert] of every call

 private:
  std::shared_ptr<const BlockTable> table_;
  std::vector<BlockId> trainable_;
  std::vector<SharedBuffer> values_;
  double delta_;
};

}  // namespace spes::trainer
