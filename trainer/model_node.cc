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
#include "trainer/model/cuda_library.h"
#include "trainer/node_state.h"
#include "trainer/optim/adamw.h"
#include "trainer/replicas.h"
#include "trainer/trained_block.h"

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

std::vector<ModelPlace> Places(const ModelNodeConfig& config) {
  std::vector<ModelPlace> places;
  for (const std::string& device : config.devices) {
    places.push_back({at::Device(device), config.compute, config.library_operators});
  }
  return places;
}

class ModelNode final : public Node {
 public:
  ModelNode(const ModelNodeConfig& config, const World& world, std::vector<BlockId> trainable,
            std::unique_ptr<BatchSource> data)
      : config_(config),
        table_(world.table),
        replicas_(config.model, world.table, config.context, Places(config),
                  config.published ? config.published : MakePublishedTensors()),
        trainable_(std::move(trainable)),
        data_(std::move(data)) {
    referred_.resize(static_cast<std::size_t>(table_->size()));
    for (BlockId id = 0; id < table_->size(); ++id) {
      const SharedBuffer& value = world.blocks[static_cast<std::size_t>(id)].data;
      if (IndexOf(id) < 0 || config_.gradients_only) {
        Refer(id, value);
      } else {
        trained_.push_back({Own(id, *value), NoMoments(id)});
      }
    }
  }

  const std::vector<BlockId>& trainable() const override { return trainable_; }

  void SetTrainable(std::vector<BlockId> ids, bool keep_moments) override {
    CheckTrainable(*table_, ids);
    std::map<BlockId, TrainedBlock> own;
    for (std::size_t i = 0; i < trained_.size(); ++i) {
      own.emplace(trainable_[i], std::move(trained_[i]));
    }
    const std::vector<BlockId> before = std::exchange(trainable_, std::move(ids));
    trained_.clear();
    gradients_.clear();
    for (const BlockId id : trainable_) {
      if (config_.gradients_only) {
        Refer(id, referred_[static_cast<std::size_t>(id)]);
        continue;
      }
      auto block = own.extract(id);
      if (block) {
        trained_.push_back(std::move(block.mapped()));
        continue;
      }
      const SharedBuffer value = std::move(referred_[static_cast<std::size_t>(id)]);
      auto kept = aside_.extract(id);
      trained_.push_back({Own(id, *value), kept ? std::move(kept.mapped()) : NoMoments(id)});
    }
    for (const BlockId id : before) {
      if (IndexOf(id) >= 0) continue;
      Refer(id, config_.gradients_only ? referred_[static_cast<std::size_t>(id)]
                                       : OnHost(id, own.at(id).value));
      if (keep_moments && !config_.gradients_only) {
        aside_.insert_or_assign(id, std::move(own.at(id).moments));
      }
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

  void SkipSteps(std::int64_t steps) override {
    for (; steps > 0; --steps) data_->Next(config_.sequences * config_.candidates, batch_);
  }

  std::vector<NodeBlock> Read(std::span<const BlockId> ids, bool with_moments) const override {
    std::vector<NodeBlock> blocks;
    for (const BlockId id : ids) {
      const int index = IndexOf(id);
      if (index < 0 || (config_.gradients_only && gradients_.empty())) {
        throw std::logic_error("a block is read that the node has not trained");
      }
      const auto i = static_cast<std::size_t>(index);
      if (config_.gradients_only) {
        blocks.push_back({id, OnHost(id, gradients_[i])});
        continue;
      }
      blocks.push_back({id, OnHost(id, trained_[i].value)});
      if (!with_moments) continue;
      const TrainedMoments& moments = trained_[i].moments;
      blocks.back().moments = std::make_shared<const BlockMoments>(
          BlockMoments{OnHost(id, moments.first), OnHost(id, moments.second), moments.updates});
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
    std::vector<BlockId> changed;
    for (const NodeBlock& block : blocks) {
      const int i = IndexOf(block.id);
      if (i < 0 || config_.gradients_only) {
        Refer(block.id, block.data);
        continue;
      }
      Adopt(*block.data, keep, trained_[static_cast<std::size_t>(i)].value);
      changed.push_back(block.id);
      if (!block.moments) continue;
      TrainedMoments& moments = trained_[static_cast<std::size_t>(i)].moments;
      Adopt(*block.moments->first, keep, moments.first);
      Adopt(*block.moments->second, keep, moments.second);
      moments.updates =
          keep > 0 ? std::max(moments.updates, block.moments->updates) : block.moments->updates;
    }
    replicas_.Broadcast(changed);
  }

  void ResetOptimizer(std::span<const BlockId> ids) override {
    if (config_.gradients_only) return;
    for (const BlockId id : ids) {
      aside_.erase(id);
      const int i = IndexOf(id);
      if (i < 0) continue;
      TrainedMoments& moments = trained_[static_cast<std::size_t>(i)].moments;
      moments.first.zero_();
      moments.second.zero_();
      moments.updates = 0;
    }
  }

  StateBytes Save() const override {
    StateWriter out;
    out.Number(static_cast<std::int32_t>(table_->dtype()));
    out.Number<std::uint64_t>(trained_.size());
    const auto put = [&](const at::Tensor& block) {
      const auto host = std::make_shared<const at::Tensor>(block.cpu());  // itself, if it is there
      out.Bytes({static_cast<const std::byte*>(host->const_data_ptr()), host->nbytes()}, host);
    };
    const auto put_moments = [&](const TrainedMoments& moments) {
      out.Number(moments.updates);
      put(moments.first);
      put(moments.second);
    };
    for (std::size_t i = 0; i < trained_.size(); ++i) {
      out.Number(trainable_[i]);
      put(trained_[i].value);
      put_moments(trained_[i].moments);
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

  void Load(std::string_view state) override {
    const SavedNode saved =
        ParseNode(state, *table_, config_.gradients_only ? std::vector<BlockId>() : trainable_);
    data_->Seek(saved.position);  // throws before anything here has changed
    const auto set = [](std::string_view from, at::Tensor& to) {
      CopyFrom(std::as_bytes(std::span(from)), to);
    };
    const auto set_moments = [&set](const SavedMoments& from, TrainedMoments& to) {
      set(from.first, to.first);
      set(from.second, to.second);
      to.updates = from.updates;
    };
    for (std::size_t i = 0; i < saved.trained.size(); ++i) {
      set(saved.trained[i].first, trained_[i].value);
      set_moments(saved.trained[i].second, trained_[i].moments);
    }
    replicas_.Broadcast(saved.trained.empty() ? std::vector<BlockId>() : trainable_);
    aside_.clear();
    for (const auto& [id, moments] : saved.aside) {
      set_moments(moments, aside_.emplace(id, NoMoments(id)).first->second);
    }
  }

 private:
  // Points the model at a published value, which nobody writes.
  void Refer(BlockId id, SharedBuffer value) {
    replicas_.Refer(id, value, config_.gradients_only && IndexOf(id) >= 0);
    referred_[static_cast<std::size_t>(id)] = std::move(value);
  }

  // Points the model at a working copy of `value`, and returns that.
  at::Tensor Own(BlockId id, const Buffer& value) {
    at::Tensor own = ZeroBlock((*table_)[id], table_->dtype(), replicas_.home());
    Adopt(value, 0, own);
    replicas_.Own(id, own);
    return own;
  }

  TrainedMoments NoMoments(BlockId id) const {
    return ZeroMoments((*table_)[id], table_->dtype(), replicas_.home());
  }

  SharedBuffer OnHost(BlockId id, const at::Tensor& values) const {
    return ToBuffer((*table_)[id], table_->dtype(), values);
  }

  // The place of block `id` among the trainable ones, or −1.
  int IndexOf(BlockId id) const {
    const auto found = std::lower_bound(trainable_.begin(), trainable_.end(), id);
    if (found == trainable_.end() || *found != id) return -1;
    return static_cast<int>(found - trainable_.begin());
  }

  analysis::StepRecord Step(std::int64_t t, RoutingCounts& routing) {
    const auto start = std::chrono::steady_clock::now();
    analysis::StepRecord record;
    record.step = t;
    record.tokens = config_.sequences * config_.context;
    record.lr = LearningRate(config_.optimizer, t);
    Draw();
    const std::int64_t rows =
        config_.micro_sequences > 0 ? config_.micro_sequences : config_.sequences;
    const std::vector<double> preference = Preference(t);
    StepGradients step = replicas_.Step(batch_, rows, trainable_,
                                        preference.empty() ? nullptr : preference.data(), routing);
    record.ce = step.losses.ce;
    record.z = step.losses.z;
    record.lb = step.losses.lb;
    record.rz = step.losses.rz;
    record.grad_norm = Optimise(record.lr, std::move(step.blocks));
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
    const auto at = [this](const char* name) {
      return replicas_.parameter(table_->Find(name)->block);
    };
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

  // Clips and updates every trainable block. Returns the gradients' norm before clipping.
  double Optimise(double lr, std::vector<at::Tensor> gradients) {
    const bool library = !replicas_.home().is_cpu() || config_.library_operators;
    const double norm = GradientNorm(table_->dtype(), gradients, library);
    if (config_.gradients_only) {
      gradients_ = std::move(gradients);
      return norm;
    }
    UpdateBlocks(config_.optimizer, lr, ClipFactor(config_.optimizer, norm), table_->dtype(),
                 gradients, trained_, library);
    replicas_.Broadcast(trainable_);
    return norm;
  }

  const ModelNodeConfig config_;
  const std::shared_ptr<const BlockTable> table_;
  Replicas replicas_;
  std::vector<BlockId> trainable_;
  const std::unique_ptr<BatchSource> data_;
  std::vector<TrainedBlock> trained_;        // by place in trainable_
  std::map<BlockId, TrainedMoments> aside_;  // of blocks trained before
  std::vector<SharedBuffer> referred_;       // by BlockId; of blocks that are not trained here
  std::vector<at::Tensor> gradients_;        // by place; of a node that computes them only
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
  require(!config.devices.empty(), "devices is empty; cpu is always there");
  require(config.compute == ComputeType::kModel || config.model.dtype == DType::kFloat32,
          "bfloat16 products want a model in float32; this one is in float64");
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
  RequireDevices(config.devices);
  return std::make_unique<ModelNode>(config, world, std::move(trainable), std::move(data));
}

std::shared_ptr<PublishedTensors> MakePublishedTensors() {
  return std::make_shared<PublishedTensors>();
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
