#include "trainer/model_node.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>

#include "trainer/model/affinity.h"
#include "trainer/model/autograd.h"
#include "trainer/model/block_tensor.h"
#include "trainer/model/model.h"
#include "trainer/node_state.h"
#include "trainer/optim/adamw.h"

namespace spes::trainer {

namespace {

void CheckTrainable(const BlockTable& table, const std::vector<BlockId>& ids) {
  if (ids.empty()) throw std::invalid_argument("a node without trainable blocks");
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= table.size() || (i > 0 && ids[i - 1] >= ids[i])) {
      throw std::invalid_argument("trainable blocks must be ascending and of this model");
    }
  }
}

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
      if (IndexOf(id) < 0 || config_.gradients_only) {
        Refer(id, value);
      } else {
        working_.push_back(Copy(id, value->Clone()));
        moments_.push_back(NoMoments(id));
      }
    }
  }

  const std::vector<BlockId>& trainable() const override { return trainable_; }

  void SetTrainable(std::vector<BlockId> ids, bool keep_moments) override {
    CheckTrainable(*table_, ids);
    std::map<BlockId, std::shared_ptr<Buffer>> working;
    std::map<BlockId, AdamMoments> moments;
    for (std::size_t i = 0; i < working_.size(); ++i) {
      working.emplace(trainable_[i], std::move(working_[i]));
      moments.emplace(trainable_[i], std::move(moments_[i]));
    }
    const std::vector<BlockId> before = std::exchange(trainable_, std::move(ids));
    working_.clear();
    moments_.clear();
    gradients_.clear();
    for (const BlockId id : trainable_) {
      if (config_.gradients_only) {
        Parameter(id).requires_grad_(true);
        continue;
      }
      auto own = working.extract(id);
      working_.push_back(own ? std::move(own.mapped()) : Copy(id, Value(id)));
      auto kept = own ? moments.extract(id) : aside_.extract(id);
      moments_.push_back(kept ? std::move(kept.mapped()) : NoMoments(id));
    }
    for (const BlockId id : before) {
      if (IndexOf(id) >= 0) continue;
      if (config_.gradients_only) {
        Parameter(id).requires_grad_(false);
      } else {
        Refer(id, std::move(working.at(id)));
      }
    }
    if (keep_moments) {
      for (auto& [id, left] : moments) aside_.insert_or_assign(id, std::move(left));
    }
  }

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

  std::vector<NodeBlock> Read(std::span<const BlockId> ids, bool with_moments) const override {
    std::vector<NodeBlock> blocks;
    for (const BlockId id : ids) {
      const int index = IndexOf(id);
      if (index < 0 || (config_.gradients_only && gradients_.empty())) {
        throw std::logic_error("a block is read that the node has not trained");
      }
      const auto i = static_cast<std::size_t>(index);
      const auto copy = [](const Buffer& b) { return std::make_shared<const Buffer>(b.Clone()); };
      blocks.push_back({id, copy(config_.gradients_only ? gradients_[i] : *working_[i])});
      if (!with_moments || config_.gradients_only) continue;
      blocks.back().moments = std::make_shared<const BlockMoments>(
          BlockMoments{copy(moments_[i].first), copy(moments_[i].second), moments_[i].updates});
    }
    return blocks;
  }

  using Node::Apply;
  void Apply(std::span<const NodeBlock> blocks, double keep) override {
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
      if (i < 0 || config_.gradients_only) {
        Refer(block.id, block.data);
        continue;
      }
      Adopt(*block.data, keep, *working_[static_cast<std::size_t>(i)]);
      if (!block.moments) continue;
      AdamMoments& moments = moments_[static_cast<std::size_t>(i)];
      Adopt(*block.moments->first, keep, moments.first);
      Adopt(*block.moments->second, keep, moments.second);
      moments.updates =
          keep > 0 ? std::max(moments.updates, block.moments->updates) : block.moments->updates;
    }
  }

  void ResetOptimizer(std::span<const BlockId> ids) override {
    if (config_.gradients_only) return;
    for (const BlockId id : ids) {
      aside_.erase(id);
      const int i = IndexOf(id);
      if (i < 0) continue;
      AdamMoments& moments = moments_[static_cast<std::size_t>(i)];
      for (Buffer* buffer : {&moments.first, &moments.second}) {
        std::memset(buffer->data(), 0, static_cast<std::size_t>(buffer->bytes()));
      }
      moments.updates = 0;
    }
  }

  std::string Save() const override {
    StateWriter out;
    out.Number(static_cast<std::int32_t>(table_->dtype()));
    out.Number<std::uint64_t>(working_.size());
    const auto put = [&](const Buffer& buffer) {
      out.Bytes({buffer.data(), static_cast<std::size_t>(buffer.bytes())});
    };
    const auto put_moments = [&](const AdamMoments& moments) {
      out.Number(moments.updates);
      put(moments.first);
      put(moments.second);
    };
    for (std::size_t i = 0; i < working_.size(); ++i) {
      out.Number(trainable_[i]);
      put(*working_[i]);
      put_moments(moments_[i]);
    }
    out.Number<std::uint64_t>(aside_.size());
    for (const auto& [id, moments] : aside_) {
      out.Number(id);
      put_moments(moments);
    }
    const std::string position = data_->Position();
    out.Bytes(std::as_bytes(std::span(position)));
    return out.Finish();
  }

  void Load(const std::string& state) override {
    const SavedNode saved =
        ParseNode(state, *table_, config_.gradients_only ? std::vector<BlockId>() : trainable_);
    data_->Seek(saved.position);  // throws before anything here has changed
    const auto set = [](std::string_view from, Buffer& to) {
      std::memcpy(to.data(), from.data(), from.size());
    };
    const auto set_moments = [&set](const SavedMoments& from, AdamMoments& to) {
      set(from.first, to.first);
      set(from.second, to.second);
      to.updates = from.updates;
    };
    for (std::size_t i = 0; i < saved.trained.size(); ++i) {
      set(saved.trained[i].first, *working_[i]);
      set_moments(saved.trained[i].second, moments_[i]);
    }
    aside_.clear();
    for (const auto& [id, moments] : saved.aside) {
      set_moments(moments, aside_.emplace(id, NoMoments(id)).first->second);
    }
  }

 private:
  at::Tensor& Parameter(BlockId id) { return parameters_[static_cast<std::size_t>(id)]; }

  // Points the model at a published value, which nobody writes.
  void Refer(BlockId id, SharedBuffer value) {
    Parameter(id) = BlockTensor((*table_)[id], table_->dtype(), std::move(value));
    if (config_.gradients_only && IndexOf(id) >= 0) Parameter(id).requires_grad_();
  }

  // A copy of the value that the model is pointed at.
  Buffer Value(BlockId id) {
    Buffer value = table_->Allocate(id);
    std::memcpy(value.data(), Parameter(id).const_data_ptr(), Parameter(id).nbytes());
    return value;
  }

  // Points the model at `value` as a working copy.
  std::shared_ptr<Buffer> Copy(BlockId id, Buffer value) {
    auto copy = std::make_shared<Buffer>(std::move(value));
    Parameter(id) = BlockTensor((*table_)[id], table_->dtype(), copy).requires_grad_();
    return copy;
  }

  AdamMoments NoMoments(BlockId id) const {
    return {table_->Allocate(id), table_->Allocate(id), 0};
  }

  // own ← keep · own + (1 − keep) · published
  void Adopt(const Buffer& published, double keep, Buffer& own) const {
    if (keep == 0) {
      std::memcpy(own.data(), published.data(), static_cast<std::size_t>(own.bytes()));
    } else if (table_->dtype() == DType::kFloat32) {
      Mix<float>(published, keep, own);
    } else {
      Mix<double>(published, keep, own);
    }
  }
  template <class T>
  static void Mix(const Buffer& published, double keep, Buffer& own) {
    const auto from = published.as<T>();
    const auto to = own.as<T>();
    const T mine = static_cast<T>(keep), theirs = static_cast<T>(1 - keep);
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = mine * to[i] + theirs * from[i];
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
    Draw();
    // An earlier step that failed half-way may have left some.
    for (const BlockId id : trainable_) Parameter(id).mutable_grad().reset();
    const std::int64_t rows =
        config_.micro_sequences > 0 ? config_.micro_sequences : config_.sequences;
    const double share = static_cast<double>(rows) / static_cast<double>(config_.sequences);
    const std::vector<double> preference = Preference(t);
    for (std::int64_t first = 0; first < config_.sequences; first += rows) {
      const auto [tokens, targets] = Microbatch(first, rows);
      const ModelLosses losses =
          model_.Losses(parameters_, tokens, targets, config_.context, &routing,
                        preference.empty() ? nullptr : preference.data());
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

  // The sequences of a step: of as many as are drawn those that suit this node's experts best.
  void Draw() {
    data_->Next(config_.sequences * config_.candidates, batch_);
    if (config_.candidates == 1) return;
    std::vector<std::int64_t> own;
    for (const BlockId id : trainable_) {
      if ((*table_)[id].kind == BlockKind::kExpert && (*table_)[id].layer == 0) {
        own.push_back((*table_)[id].expert);
      }
    }
    const auto at = [this](const char* name) { return Parameter(table_->Find(name)->block); };
    KeepNearest(
        RouterAffinity(config_.model, {at("embed"), at("layers.0.ffn_norm"), at("layers.0.router")},
                       own, batch_),
        config_.sequences, batch_);
  }

  // [L · E] factors for the choice of experts at step t; empty where it leans nowhere.
  std::vector<double> Preference(std::int64_t t) const {
    if (t >= config_.routing_bias_length || config_.routing_bias == 0) return {};
    const double young =
        1 - static_cast<double>(t) / static_cast<double>(config_.routing_bias_length);
    const int experts = config_.model.experts;
    std::vector<double> preference(static_cast<std::size_t>(config_.model.layers * experts), 1);
    for (const BlockId id : trainable_) {
      const BlockSpec& block = (*table_)[id];
      if (block.kind != BlockKind::kExpert) continue;
      preference[static_cast<std::size_t>(block.layer * experts + block.expert)] =
          std::exp(config_.routing_bias * young);
    }
    return preference;
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
    if (config_.gradients_only) {
      KeepGradients(gradients);
      return norm;
    }
    for (std::size_t i = 0; i < trainable_.size(); ++i) {
      AdamWUpdate(config_.optimizer, lr, factor, table_->dtype(), gradients[i].const_data_ptr(),
                  gradients[i].numel(), *working_[i], moments_[i]);
    }
    return norm;
  }

  void KeepGradients(const std::vector<at::Tensor>& gradients) {
    gradients_.clear();
    for (std::size_t i = 0; i < trainable_.size(); ++i) {
      Buffer& kept = gradients_.emplace_back(table_->Allocate(trainable_[i]));
      std::memcpy(kept.data(), gradients[i].const_data_ptr(), gradients[i].nbytes());
    }
  }

  const ModelNodeConfig config_;
  const std::shared_ptr<const BlockTable> table_;
  const Model model_;
  std::vector<BlockId> trainable_;
  const std::unique_ptr<BatchSource> data_;
  std::vector<at::Tensor> parameters_;            // by BlockId
  std::vector<std::shared_ptr<Buffer>> working_;  // by place in trainable_
  std::vector<AdamMoments> moments_;              // likewise
  std::map<BlockId, AdamMoments> aside_;          // of blocks trained before
  std::vector<Buffer> gradients_;                 // by place; of a node that computes them only
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
  require(config.candidates >= 1 && (config.candidates == 1 || config.model.experts > 0),
          "candidates is " + std::to_string(config.candidates) +
              "; at least 1, and 1 where the model has no experts");
  require(config.device == "cpu", "device is " + config.device + "; this program has cpu only");
  require(world.blocks.size() == static_cast<std::size_t>(world.table->size()) &&
              world.table->dtype() == config.model.dtype,
          "the world is not one of this model");
  CheckTrainable(*world.table, trainable);
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
