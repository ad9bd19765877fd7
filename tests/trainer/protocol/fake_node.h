// A node without a model: "training" adds a known amount to its blocks.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trainer/node.h"
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
    return result;
  }

  std::vector<NodeBlock> ReadTrainable() const override {
    std::vector<NodeBlock> blocks;
    for (const BlockId id : trainable_) {
      blocks.push_back({id, std::make_shared<Buffer>(Value(id)->Clone())});
    }
    return blocks;
  }

  void Apply(std::span<const NodeBlock> blocks) override {
    for (const NodeBlock& block : blocks) {
      values_[static_cast<std::size_t>(block.id)] = block.data;
      applied.push_back(block.id);
    }
  }

  void ResetOptimizer() override { ++resets; }
  std::string Save() const override { return {}; }
  void Load(const std::string&) override {}

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
  SharedBuffer Value(BlockId id) const { return values_[static_cast<std::size_t>(id)]; }
  double First(BlockId id) const { return Value(id)->as<double>()[0]; }

  std::vector<std::int64_t> trained_steps;
  std::vector<BlockId> applied;
  int resets = 0;
  std::int64_t tokens_per_step = 10;

 private:
  std::shared_ptr<const BlockTable> table_;
  std::vector<BlockId> trainable_;
  std::vector<SharedBuffer> values_;
  double delta_;
};

}  // namespace spes::trainer
