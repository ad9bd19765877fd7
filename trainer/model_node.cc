#include "trainer/model_node.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>

#include "trainer/model/autograd.h"
#include "trainer/model/block_tensor.h"
#include "trainer/model/model.h"
#include "trainer/node_state.h"
#include "trainer/optim/adamw.h"

namespace spes::trainer {

namespace {

class ModelNode final : public Node {
 public:
  ModelNode(const ModelNodeConfig& config, const World& world, std::vector<BlockId> trainable,
            std::unique_ptr<BatchSource> data)
      : config_(config),
        table_(world.table),
        model_(config.model, world.table, config.context),
        trainable_(std::move(trainable)),
        data_(std::move(data)) {
    parameters_.resize(static_cast<std::size_t>(table_->size()));
    for (BlockId id = 0; id < table_->size(); ++id) {
      const SharedBuffer& value = world.blocks[static_cast<std::size_t>(id)].data;
      if (IndexOf(id) < 0) {
        Refer(id, value);
        continue;
      }
      auto copy = std::make_shared<Buffer>(value->Clone());
      Parameter(id) = BlockTensor((*table_)[id], table_->dtype(), copy).requires_grad_();
      working_.push_back(std::move(copy));
      moments_.push_back({table_->Allocate(id), table_->Allocate(id), 0});
    }
  }

  const std::vector<BlockId>& trainable() const override { return trainable_; }

  TrainResult TrainSteps(std::int64_t first_step, int steps,
                         const std::atomic<bool>& stop) override {
    TrainResult result;
    const ModelConfig& model = config_.model;
    if (model.experts > 0) {
      const auto layers = static_cast<std::size_t>(model.layers);
      result.routing.routed.assign(
          layers, std::vector<std::int64_t>(static_cast<std::size_t>(model.experts)));
      result.routing.entropy_sum.assign(layers, 0);
    }
    for (int i = 0; i < steps && !stop.load(); ++i) {
      result.steps.push_back(Step(first_step + i, result.routing));
      if (config_.steps_done) ++*config_.steps_done;
    }
    return result;
  }

  std::vector<NodeBlock> ReadTrainable() const override {
    std::vector<NodeBlock> blocks;
    for (std::size_t i = 0; i < trainable_.size(); ++i) {
      blocks.push_back({trainable_[i], std::make_shared<const Buffer>(working_[i]->Clone())});
    }
    return blocks;
  }

  void Apply(std::span<const NodeBlock> blocks) override {
    for (const NodeBlock& block : blocks) {
      if (block.id < 0 || block.id >= table_->size() ||
          block.data->bytes() !=
              (*table_)[block.id].buffer_elements * ElementBytes(table_->dtype())) {
        throw std::invalid_argument("block " + std::to_string(block.id) +
                                    " does not fit this model");
      }
    }
    for (const NodeBlock& block : blocks) {
      const int i = IndexOf(block.id);
      if (i < 0) {
        Refer(block.id, block.data);
      } else {
        Buffer& working = *working_[static_cast<std::size_t>(i)];
        std::memcpy(working.data(), block.data->data(), static_cast<std::size_t>(working.bytes()));
      }
    }
  }

  void ResetOptimizer() override {
    for (AdamMoments& moments : moments_) {
      for (Buffer* buffer : {&moments.first, &moments.second}) {
        std::memset(buffer->data(), 0, static_cast<std::size_t>(buffer->bytes()));
      }
      moments.updates = 0;
    }
  }

  std::string Save() const override {
    StateWriter out;
    out.Number(static_cast<std::int32_t>(table_->dtype()));
    out.Number<std::uint64_t>(trainable_.size());
    const auto put = [&](const Buffer& buffer) {
      out.Bytes({buffer.data(), static_cast<std::size_t>(buffer.bytes())});
    };
    for (std::size_t i = 0; i < trainable_.size(); ++i) {
      out.Number(trainable_[i]);
      out.Number(moments_[i].updates);
      put(*working_[i]);
      put(moments_[i].first);
      put(moments_[i].second);
    }
    const std::string position = data_->Position();
    out.Bytes(std::as_bytes(std::span(position)));
    return out.Finish();
  }

  void Load(const std::string& state) override {
    const auto require = [](bool holds, const char* what) {
      if (!holds) throw std::invalid_argument(std::string("saved state of a node: ") + what);
    };
    StateReader in(state);
    require(in.Number<std::int32_t>() == static_cast<std::int32_t>(table_->dtype()),
            "of another element type");
    require(in.Number<std::uint64_t>() == trainable_.size(), "it trains other blocks");
    struct Saved {
      std::int64_t updates;
      std::string_view values, first, second;
    };
    std::vector<Saved> saved;
    for (std::size_t i = 0; i < trainable_.size(); ++i) {
      require(in.Number<BlockId>() == trainable_[i], "it trains other blocks");
      const auto updates = in.Number<std::int64_t>();
      const auto next = [&] {
        const std::string_view bytes = in.Bytes();
        require(static_cast<std::int64_t>(bytes.size()) == working_[i]->bytes(),
                "a block has another size");
        return bytes;
      };
      saved.push_back({updates, next(), next(), next()});
    }
    const std::string position(in.Bytes());
    in.ExpectEnd();
    data_->Seek(position);  // throws before anything here has changed
    for (std::size_t i = 0; i < saved.size(); ++i) {
      const auto set = [](std::string_view from, Buffer& to) {
        std::memcpy(to.data(), from.data(), from.size());
      };
      set(saved[i].values, *working_[i]);
      set(saved[i].first, moments_[i].first);
      set(saved[i].second, moments_[i].second);
      moments_[i].updates = saved[i].updates;
    }
  }

 private:
  at::Tensor& Parameter(BlockId id) { return parameters_[static_cast<std::size_t>(id)]; }

  void Refer(BlockId id, SharedBuffer value) {
    Parameter(id) = BlockTensor((*table_)[id], table_->dtype(), std::move(value));
  }

  // The place of block `id` among the trainable ones, or −1.
  int IndexOf(BlockId id) const {
    const auto found = std::lower_bound(trainable_.begin(), trainable_.end(), id);
    if (found == trainable_.end() || *found != id) return -1;
    return static_cast<int>(found - trainable_.begin());
  }

  // Inputs and targets of sequences `first` … `first` + `count` − 1 of the batch, [count · T] each.
  std::pair<at::Tensor, at::Tensor> Microbatch(std::int64_t first, std::int64_t count) const {
    const std::int64_t T = config_.context;
    at::Tensor tokens = at::empty({count * T}, at::kInt), targets = at::empty_like(tokens);
    for (std::int64_t s = 0; s < count; ++s) {
      const std::int32_t* row = batch_.tokens.data() + (first + s) * (T + 1);
      std::copy(row, row + T, tokens.data_ptr<std::int32_t>() + s * T);
      std::copy(row + 1, row + T + 1, targets.data_ptr<std::int32_t>() + s * T);
    }
    return {tokens, targets};
  }

  analysis::StepRecord Step(std::int64_t t, RoutingCounts& routing) {
    const auto start = std::chrono::steady_clock::now();
    analysis::StepRecord record;
    record.step = t;
    record.tokens = config_.sequences * config_.context;
    record.lr = LearningRate(config_.optimizer, t);
    data_->Next(config_.sequences, batch_);
    // An earlier step that failed half-way may have left some.
    for (const BlockId id : trainable_) Parameter(id).mutable_grad().reset();
    const std::int64_t rows =
        config_.micro_sequences > 0 ? config_.micro_sequences : config_.sequences;
    const double share = static_cast<double>(rows) / static_cast<double>(config_.sequences);
    for (std::int64_t first = 0; first < config_.sequences; first += rows) {
      const auto [tokens, targets] = Microbatch(first, rows);
      const ModelLosses losses =
          model_.Losses(parameters_, tokens, targets, config_.context, &routing);
      losses.total.backward(at::full({}, share, losses.total.options()));
      const auto add = [share](double& sum, const at::Tensor& pair, int i) {
        if (pair.defined()) sum += share * pair[i].item<double>();
      };
      add(record.ce, losses.output, 0);
      add(record.z, losses.output, 1);
      add(record.lb, losses.router, 0);
      add(record.rz, losses.router, 1);
    }
    record.grad_norm = Optimise(record.lr);
    record.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return record;
  }

  // Clips, updates every trainable block, and gives the gradients' memory back. Returns their norm
  // before clipping.
  double Optimise(double lr) {
    std::vector<at::Tensor> gradients;
    double square = 0;
    for (const BlockId id : trainable_) {
      gradients.push_back(Parameter(id).grad().contiguous());
      Parameter(id).mutable_grad().reset();
      square +=
          SquaredNorm(table_->dtype(), gradients.back().const_data_ptr(), gradients.back().numel());
    }
    const double norm = std::sqrt(square), factor = ClipFactor(config_.optimizer, norm);
    for (std::size_t i = 0; i < trainable_.size(); ++i) {
      AdamWUpdate(config_.optimizer, lr, factor, table_->dtype(), gradients[i].const_data_ptr(),
                  gradients[i].numel(), *working_[i], moments_[i]);
    }
    return norm;
  }

  const ModelNodeConfig config_;
  const std::shared_ptr<const BlockTable> table_;
  const Model model_;
  const std::vector<BlockId> trainable_;
  const std::unique_ptr<BatchSource> data_;
  std::vector<at::Tensor> parameters_;            // by BlockId
  std::vector<std::shared_ptr<Buffer>> working_;  // by place in trainable_
  std::vector<AdamMoments> moments_;              // likewise
  Batch batch_;
};

void Check(const ModelNodeConfig& config, const World& world,
           const std::vector<BlockId>& trainable) {
  const auto require = [](bool holds, const std::string& what) {
    if (!holds) throw std::invalid_argument(what);
  };
  Validate(config.model);
  Validate(config.optimizer);
  require(config.optimizer.decay_steps > 0,
          "optimizer: decay_steps is 0; it must be positive here");
  require(config.context >= 1, "context is " + std::to_string(config.context) + "; at least 1");
  require(config.sequences >= 1,
          "sequences is " + std::to_string(config.sequences) + "; at least 1");
  require(config.micro_sequences >= 0 &&
              (config.micro_sequences == 0 || config.sequences % config.micro_sequences == 0),
          "micro_sequences is " + std::to_string(config.micro_sequences) +
              "; it must divide sequences, which is " + std::to_string(config.sequences));
  require(config.device == "cpu", "device is " + config.device + "; this program has cpu only");
  require(world.blocks.size() == static_cast<std::size_t>(world.table->size()) &&
              world.table->dtype() == config.model.dtype,
          "the world is not one of this model");
  require(!trainable.empty(), "a node without trainable blocks");
  for (std::size_t i = 0; i < trainable.size(); ++i) {
    require(trainable[i] >= 0 && trainable[i] < world.table->size() &&
                (i == 0 || trainable[i - 1] < trainable[i]),
            "trainable blocks must be ascending and of this model");
  }
}

}  // namespace

std::unique_ptr<Node> MakeModelNode(const ModelNodeConfig& config, const World& world,
                                    std::vector<BlockId> trainable,
                                    std::unique_ptr<BatchSource> data) {
  InitLibTorch();
  Check(config, world, trainable);
  return std::make_unique<ModelNode>(config, world, std::move(trainable), std::move(data));
}

void InitLibTorch() {
  static std::once_flag once;
  std::call_once(once, [] {
    at::set_num_threads(1);
    at::set_num_interop_threads(1);
    at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
    // Otherwise every new tensor is filled with NaN first.
    at::globalContext().setDeterministicFillUninitializedMemory(false);
  });
}

}  // namespace spes::trainer
