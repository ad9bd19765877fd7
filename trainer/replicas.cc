#include "trainer/replicas.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <future>
#include <mutex>
#include <utility>

#include "trainer/model/autograd.h"
#include "trainer/model/block_tensor.h"

namespace spes::trainer {

namespace {

// Inputs and targets of sequences `first` … `first` + `count` − 1 of the batch, [count · T] each.
std::pair<at::Tensor, at::Tensor> Microbatch(const Batch& batch, std::int64_t first,
                                             std::int64_t count) {
  const std::int64_t T = batch.context;
  at::Tensor tokens = at::empty({count * T}, at::kInt), targets = at::empty_like(tokens);
  for (std::int64_t s = 0; s < count; ++s) {
    const std::int32_t* row = batch.tokens.data() + (first + s) * (T + 1);
    std::copy(row, row + T, tokens.data_ptr<std::int32_t>() + s * T);
    std::copy(row + 1, row + T + 1, targets.data_ptr<std::int32_t>() + s * T);
  }
  return {tokens, targets};
}

StepLosses Numbers(const ModelLosses& losses) {
  StepLosses numbers;
  const auto read = [](const at::Tensor& pair, double& first, double& second) {
    if (!pair.defined()) return;
    const at::Tensor host = pair.detach().to(at::kDouble).cpu();
    first = host.const_data_ptr<double>()[0];
    second = host.const_data_ptr<double>()[1];
  };
  read(losses.output, numbers.ce, numbers.z);
  read(losses.router, numbers.lb, numbers.rz);
  return numbers;
}

}  // namespace

// Lets microbatches through one after the other, whichever thread they are on.
class Replicas::Turns {
 public:
  // Waits until it is the turn of microbatch i; false where another has failed.
  bool Wait(std::int64_t i) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return next_ == i || failure_; });
    return !failure_;
  }
  void Pass() {
    const std::lock_guard lock(mutex_);
    ++next_;
    changed_.notify_all();
  }
  void Fail(std::exception_ptr failure) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::move(failure);
    changed_.notify_all();
  }
  void Rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::int64_t next_ = 0;
  std::exception_ptr failure_;
};

Replicas::Replicas(const ModelConfig& config, std::shared_ptr<const BlockTable> table,
                   std::int64_t context, std::span<const ModelPlace> places,
                   std::shared_ptr<PublishedTensors> published)
    : table_(std::move(table)), published_(std::move(published)) {
  for (const ModelPlace& place : places) {
    replicas_.push_back({place, Model(config, table_, context, place),
                         std::vector<at::Tensor>(static_cast<std::size_t>(table_->size()))});
  }
  if (replicas_.size() > 1) {
    others_ = std::make_unique<ComputePool>(static_cast<int>(replicas_.size()) - 1);
  }
}

const at::Tensor& Replicas::parameter(BlockId id) const {
  return replicas_[0].parameters[static_cast<std::size_t>(id)];
}

void Replicas::Refer(BlockId id, const SharedBuffer& value, bool trains) {
  for (Replica& replica : replicas_) {
    const at::ScalarType type = trains ? ScalarTypeOf(table_->dtype()) : replica.model.type(id);
    at::Tensor& parameter = replica.parameters[static_cast<std::size_t>(id)];
    parameter = published_->Get((*table_)[id], table_->dtype(), value, replica.place.device, type);
    // Others may refer to the same memory, and want no gradient.
    if (trains) parameter = parameter.detach().requires_grad_();
  }
}

void Replicas::Own(BlockId id, const at::Tensor& flat) {
  for (Replica& replica : replicas_) {
    const bool copy = &replica != replicas_.data();
    const at::Tensor own =
        copy ? flat.to(replica.place.device, flat.scalar_type(), /*non_blocking=*/false, copy)
             : flat;
    replica.parameters[static_cast<std::size_t>(id)] =
        ShapedBlock((*table_)[id], own).detach().requires_grad_();
  }
}

void Replicas::Broadcast(std::span<const BlockId> ids) {
  const at::NoGradGuard no_gradients;
  for (std::size_t r = 1; r < replicas_.size(); ++r) {
    for (const BlockId id : ids) {
      replicas_[r].parameters[static_cast<std::size_t>(id)].copy_(parameter(id));
    }
  }
}

Replicas::Pass Replicas::ForwardAndBackward(Replica& replica, const Batch& batch,
                                            std::int64_t first, std::int64_t rows,
                                            const double* preference) const {
  Pass pass;
  if (table_->experts() > 0) {
    const auto layers = static_cast<std::size_t>(table_->layers());
    pass.counts.routed.assign(
        layers, std::vector<std::int64_t>(static_cast<std::size_t>(table_->experts())));
    pass.counts.entropy_sum.assign(layers, 0);
  }
  const auto [tokens, targets] = Microbatch(batch, first, rows);
  const ModelLosses losses = replica.model.Losses(replica.parameters, tokens, targets,
                                                  batch.context, &pass.counts, preference);
  const double share = static_cast<double>(rows) / static_cast<double>(batch.sequences);
  losses.total.backward(at::full({}, share, losses.total.options()));
  pass.losses = Numbers(losses);
  return pass;
}

void Replicas::AddGradients(Replica& replica, std::span<const BlockId> trains,
                            std::vector<at::Tensor>& sum) const {
  const bool first = sum.empty();
  for (std::size_t i = 0; i < trains.size(); ++i) {
    at::Tensor& parameter = replica.parameters[static_cast<std::size_t>(trains[i])];
    const at::Tensor gradient = parameter.grad().to(home()).contiguous();
    parameter.mutable_grad().reset();
    if (first) {
      sum.push_back(gradient);
    } else {
      sum[i].add_(gradient);
    }
  }
}

StepGradients Replicas::Step(const Batch& batch, std::int64_t rows, std::span<const BlockId> trains,
                             const double* preference, RoutingCounts& counts) {
  const std::int64_t microbatches = batch.sequences / rows;
  const auto active =
      std::min<std::int64_t>(static_cast<std::int64_t>(replicas_.size()), microbatches);
  StepGradients step;
  std::vector<Pass> passes(static_cast<std::size_t>(microbatches));
  Turns turns;
  const auto work = [&](std::int64_t r) {
    Replica& replica = replicas_[static_cast<std::size_t>(r)];
    try {
      // An earlier step that failed half-way may have left some.
      for (const BlockId id : trains) {
        replica.parameters[static_cast<std::size_t>(id)].mutable_grad().reset();
      }
      for (std::int64_t i = r; i < microbatches; i += active) {
        passes[static_cast<std::size_t>(i)] =
            ForwardAndBackward(replica, batch, i * rows, rows, preference);
        // One replica alone adds its gradients up where they are made, in the same order.
        if (active == 1 && i + 1 < microbatches) continue;
        if (active > 1 && !turns.Wait(i)) return;
        AddGradients(replica, trains, step.blocks);
        turns.Pass();
      }
    } catch (...) {
      turns.Fail(std::current_exception());
    }
  };
  std::vector<std::future<void>> others;
  for (std::int64_t r = 1; r < active; ++r) {
    others.push_back(others_->Submit(sim::Time{0}, [&work, r] { work(r); }));
  }
  work(0);
  for (std::future<void>& other : others) other.get();
  turns.Rethrow();

  const double share = static_cast<double>(rows) / static_cast<double>(batch.sequences);
  for (const Pass& pass : passes) {
    step.losses.ce += share * pass.losses.ce;
    step.losses.z += share * pass.losses.z;
    step.losses.lb += share * pass.losses.lb;
    step.losses.rz += share * pass.losses.rz;
    counts.Add(pass.counts);
  }
  return step;
}

}  // namespace spes::trainer
