#include "trainer/wait_node.h"

#include <chrono>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "trainer/node_state.h"

namespace spes::trainer {

namespace {

class WaitNode final : public Node {
 public:
  WaitNode(const World& world, std::vector<BlockId> trainable, std::int64_t tokens,
           std::function<double(std::int64_t)> step_s)
      : table_(world.table),
        trainable_(std::move(trainable)),
        tokens_(tokens),
        step_s_(std::move(step_s)) {
    for (const PublishedBlock& block : world.blocks) values_.push_back(block.data);
  }

  const std::vector<BlockId>& trainable() const override { return trainable_; }
  void SetTrainable(std::vector<BlockId> ids, bool) override { trainable_ = std::move(ids); }

  TrainResult TrainSteps(std::int64_t first_step, int steps,
                         const std::atomic<bool>& stop) override {
    using Clock = std::chrono::steady_clock;
    constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();
    TrainResult result;
    for (std::int64_t step = first_step; step < first_step + steps && !stop; ++step) {
      const Clock::time_point begin = Clock::now();
      const Clock::time_point end =
          begin + std::chrono::duration_cast<Clock::duration>(
                      std::chrono::duration<double>(step_s_ ? step_s_(step) : 0.0));
      while (!stop && Clock::now() < end) {
        std::this_thread::sleep_until(std::min(end, Clock::now() + std::chrono::milliseconds(50)));
      }
      if (stop) break;
      analysis::StepRecord record;
      record.step = step;
      record.wall_s = std::chrono::duration<double>(Clock::now() - begin).count();
      record.tokens = tokens_;
      record.ce = record.z = record.lb = record.rz = record.grad_norm = record.lr = kNotANumber;
      result.steps.push_back(record);
    }
    return result;
  }

  void SkipSteps(std::int64_t) override {}  // it has no data

  std::vector<NodeBlock> Read(std::span<const BlockId> ids, bool with_moments) const override {
    std::vector<NodeBlock> blocks;
    for (const BlockId id : ids) {
      blocks.push_back({id, values_[static_cast<std::size_t>(id)]});
      if (!with_moments) continue;
      const auto zero = std::make_shared<const Buffer>(table_->Allocate(id));
      blocks.back().moments = std::make_shared<const BlockMoments>(BlockMoments{zero, zero, 0});
    }
    return blocks;
  }

  void Apply(std::span<const NodeBlock> blocks, double) override {
    for (const NodeBlock& block : blocks) values_[static_cast<std::size_t>(block.id)] = block.data;
  }
  void ResetOptimizer(std::span<const BlockId>) override {}

  StateBytes Save() const override {
    StateWriter out;
    for (const BlockId id : trainable_) {
      const SharedBuffer& value = values_[static_cast<std::size_t>(id)];
      out.Bytes(value->as<std::byte>(), value);
    }
    return out.Finish();
  }
  void Load(std::string_view state) override {
    StateReader in(state);
    for (const BlockId id : trainable_) {
      auto value = std::make_shared<Buffer>(table_->Allocate(id));
      const std::string_view bytes = in.Bytes();
      if (static_cast<std::int64_t>(bytes.size()) != value->bytes()) {
        throw std::invalid_argument("saved state of a node: a block is of another size");
      }
      std::memcpy(value->data(), bytes.data(), bytes.size());
      values_[static_cast<std::size_t>(id)] = std::move(value);
    }
    in.ExpectEnd();
  }

 private:
  std::shared_ptr<const BlockTable> table_;
  std::vector<BlockId> trainable_;
  std::vector<SharedBuffer> values_;  // [block]
  std::int64_t tokens_;
  std::function<double(std::int64_t)> step_s_;
};

}  // namespace

std::unique_ptr<Node> MakeWaitNode(const World& world, std::vector<BlockId> trainable,
                                   std::int64_t tokens,
                                   std::function<double(std::int64_t step)> step_s) {
  return std::make_unique<WaitNode>(world, std::move(trainable), tokens, std::move(step_s));
}

}  // namespace spes::trainer
