// A node without a model whose every value depends on all that it has gone through: what it adopted
// and when, its moments, where it is in its data.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trainer/data/keyed_random.h"
#include "trainer/node.h"
#include "trainer/node_state.h"

namespace spes::trainer {

// float64 only.
class ChaosNode final : public Node {
 public:
  struct Watch {
    std::function<void(std::int64_t first_step, const ChaosNode&)> trains;
    std::function<void(const NodeBlock&)> adopts;
    std::function<void()> loads;
  };

  ChaosNode(const World& world, std::vector<BlockId> trainable, int node, bool gradients,
            Watch watch)
      : table_(world.table),
        trainable_(std::move(trainable)),
        node_(node),
        gradients_only_(gradients),
        watch_(std::move(watch)) {
    for (const PublishedBlock& block : world.blocks) values_.push_back(block.data);
  }

  const std::vector<BlockId>& trainable() const override { return trainable_; }
  const Buffer& Value(BlockId id) const { return *values_[static_cast<std::size_t>(id)]; }

  void SetTrainable(std::vector<BlockId> ids, bool keep_moments) override {
    for (const BlockId id : trainable_) {
      if (std::binary_search(ids.begin(), ids.end(), id)) continue;
      auto left = moments_.extract(id);
      if (keep_moments && left) aside_[id] = std::move(left.mapped());
    }
    for (const BlockId id : ids) {
      if (std::binary_search(trainable_.begin(), trainable_.end(), id)) continue;
      if (auto kept = aside_.extract(id)) moments_.insert(std::move(kept));
    }
    trainable_ = std::move(ids);
  }

  // g = noise + 0.05 x + what depends on the whole model; m ← ½ m + g, v ← 0.9 v + g²,
  // x ← x − 0.1 (1 + 1 / updates) m.
  TrainResult TrainSteps(std::int64_t first_step, int steps, const std::atomic<bool>&) override {
    if (steps > 0) watch_.trains(first_step, *this);
    TrainResult result;
    for (int i = 0; i < steps; ++i) {
      ++position_;
      double all = 0;
      for (const SharedBuffer& value : values_) all += value->as<double>()[0];
      for (const BlockId id : trainable_) Step(id, 0.01 * std::sin(all));
      analysis::StepRecord record;
      record.step = first_step + i;
      record.tokens = 5 + node_ + static_cast<std::int64_t>(Key(1, node_, position_) % 7);
      result.steps.push_back(record);
    }
    return result;
  }

  void SkipSteps(std::int64_t steps) override { position_ += steps; }

  std::vector<NodeBlock> Read(std::span<const BlockId> ids, bool with_moments) const override {
    std::vector<NodeBlock> blocks;
    for (const BlockId id : ids) {
      const SharedBuffer value = gradients_only_ ? gradients_.at(id) : values_[Index(id)];
      blocks.push_back({id, std::make_shared<Buffer>(value->Clone())});
      if (!with_moments || gradients_only_) continue;
      const auto found = moments_.find(id);
      blocks.back().moments = std::make_shared<BlockMoments>(
          found == moments_.end()
              ? BlockMoments{std::make_shared<Buffer>(table_->Allocate(id)),
                             std::make_shared<Buffer>(table_->Allocate(id)), 0}
              : BlockMoments{std::make_shared<Buffer>(found->second.first->Clone()),
                             std::make_shared<Buffer>(found->second.second->Clone()),
                             found->second.updates});
    }
    return blocks;
  }

  using Node::Apply;
  void Apply(std::span<const NodeBlock> blocks, double keep) override {
    for (const NodeBlock& block : blocks) {
      watch_.adopts(block);
      const bool own = std::binary_search(trainable_.begin(), trainable_.end(), block.id);
      if (!own || gradients_only_) {
        values_[Index(block.id)] = block.data;
        continue;
      }
      values_[Index(block.id)] = Mixed(*values_[Index(block.id)], *block.data, keep);
      if (!block.moments) continue;
      Moments& m = MomentsOf(block.id);
      m.first = Mixed(*m.first, *block.moments->first, keep);
      m.second = Mixed(*m.second, *block.moments->second, keep);
      m.updates = keep > 0 ? std::max(m.updates, block.moments->updates) : block.moments->updates;
    }
  }

  void ResetOptimizer(std::span<const BlockId> ids) override {
    for (const BlockId id : ids) {
      moments_.erase(id);
      aside_.erase(id);
    }
  }

  StateBytes Save() const override {
    StateWriter out;
    const auto put = [&out](const Buffer& b) { out.Bytes(b.as<std::byte>()); };
    const auto put_moments = [&](const std::map<BlockId, Moments>& all) {
      out.Number<std::uint64_t>(all.size());
      for (const auto& [id, m] : all) {
        out.Number(id);
        out.Number(m.updates);
        put(*m.first);
        put(*m.second);
      }
    };
    for (const BlockId id : gradients_only_ ? std::vector<BlockId>() : trainable_) put(Value(id));
    put_moments(moments_);
    put_moments(aside_);
    out.Number(position_);
    return out.Finish();
  }

  void Load(std::string_view state) override {
    watch_.loads();
    StateReader in(state);
    const auto take = [&](BlockId id) {
      auto buffer = std::make_shared<Buffer>(table_->Allocate(id));
      const std::string_view bytes = in.Bytes();
      std::memcpy(buffer->data(), bytes.data(), bytes.size());
      return buffer;
    };
    const auto take_moments = [&] {
      std::map<BlockId, Moments> all;
      for (auto left = in.Number<std::uint64_t>(); left > 0; --left) {
        const auto id = in.Number<BlockId>();
        const auto updates = in.Number<std::int64_t>();
        auto first = take(id);
        all[id] = {std::move(first), take(id), updates};
      }
      return all;
    };
    for (const BlockId id : gradients_only_ ? std::vector<BlockId>() : trainable_) {
      values_[Index(id)] = take(id);
    }
    moments_ = take_moments();
    aside_ = take_moments();
    position_ = in.Number<std::int64_t>();
    in.ExpectEnd();
  }

 private:
  struct Moments {
    std::shared_ptr<Buffer> first, second;
    std::int64_t updates = 0;
  };

  static std::size_t Index(BlockId id) { return static_cast<std::size_t>(id); }

  Moments& MomentsOf(BlockId id) {
    Moments& m = moments_[id];
    if (!m.first) {
      m.first = std::make_shared<Buffer>(table_->Allocate(id));
      m.second = std::make_shared<Buffer>(table_->Allocate(id));
    }
    return m;
  }

  static std::shared_ptr<Buffer> Mixed(const Buffer& own, const Buffer& published, double keep) {
    auto mixed = std::make_shared<Buffer>(published.Clone());
    if (keep == 0) return mixed;
    for (std::size_t i = 0; i < mixed->as<double>().size(); ++i) {
      double& x = mixed->as<double>()[i];
      x = keep * own.as<double>()[i] + (1 - keep) * x;
    }
    return mixed;
  }

  void Step(BlockId id, double common) {
    auto value = std::make_shared<Buffer>(Value(id).Clone());
    auto gradient = std::make_shared<Buffer>(table_->Allocate(id));
    Moments& m = MomentsOf(id);
    ++m.updates;
    for (const BlockPart& part : (*table_)[id].parts) {
      for (std::int64_t k = part.offset; k < part.offset + part.elements; ++k) {
        const auto i = static_cast<std::size_t>(k);
        double& x = value->as<double>()[i];
        const double g = Uniform(Key(2, node_, position_, id), i) - 0.5 + 0.05 * x + common;
        double& first = m.first->as<double>()[i];
        double& second = m.second->as<double>()[i];
        first = 0.5 * first + g;
        second = 0.9 * second + g * g;
        gradient->as<double>()[i] = g;
        x -= 0.1 * (1 + 1 / static_cast<double>(m.updates)) * first;
      }
    }
    if (gradients_only_) {
      gradients_[id] = std::move(gradient);
      moments_.clear();
    } else {
      values_[Index(id)] = std::move(value);
    }
  }

  const std::shared_ptr<const BlockTable> table_;
  std::vector<BlockId> trainable_;
  const int node_;
  const bool gradients_only_;
  const Watch watch_;
  std::vector<SharedBuffer> values_;  // [block]
  std::map<BlockId, Moments> moments_, aside_;
  std::map<BlockId, SharedBuffer> gradients_;  // of the last step
  std::int64_t position_ = 0;
};

}  // namespace spes::trainer
