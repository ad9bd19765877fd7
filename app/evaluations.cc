#include "app/evaluations.h"

#include <chrono>
#include <cmath>
#include <utility>

namespace spes::app {

namespace {
constexpr std::int64_t kSequences = 16;  // evaluated at once
constexpr std::size_t kMostPending = 4;  // rounds
}  // namespace

Evaluations::Evaluations(trainer::ModelConfig model, std::string device,
                         std::shared_ptr<const trainer::Dataset> dataset, std::int64_t context,
                         trainer::ComputePool& pool, analysis::Recorder& recorder,
                         const std::atomic<bool>& stop)
    : model_(model),
      device_(std::move(device)),
      dataset_(std::move(dataset)),
      pool_(pool),
      recorder_(recorder),
      stop_(stop) {
  for (int d = 0; d < dataset_->domains(); ++d) {
    held_out_.push_back(std::make_shared<const std::vector<trainer::Batch>>(
        dataset_->HeldOut(d, kSequences, context)));
  }
}

void Evaluations::Submit(const trainer::PublishedRound& published) {
  // Each waiting evaluation holds a whole world: where the pool never idles, wait for the oldest.
  const std::size_t most = kMostPending * static_cast<std::size_t>(dataset_->domains());
  while (pending_.size() >= most) {
    pending_.front().done.wait();
    Collect();
  }
  for (int d = 0; d < dataset_->domains(); ++d) {
    Pending pending;
    pending.record.round = published.round;
    pending.record.step = published.step;
    pending.record.virtual_s = published.virtual_s;
    pending.record.domain = dataset_->domain(d);
    pending.record.bytes_so_far = published.bytes_so_far;
    pending.result = std::make_shared<trainer::EvalResult>();
    // Due never: training goes first.
    pending.done =
        pool_.Submit(sim::kNever, [this, world = published.world, result = pending.result,
                                   batches = held_out_[static_cast<std::size_t>(d)]] {
          *result = trainer::Evaluate(model_, world, *batches, stop_, device_);
        });
    pending_.push_back(std::move(pending));
  }
}

void Evaluations::Collect(const std::function<void()>& while_waiting) {
  while (!pending_.empty()) {
    Pending& first = pending_.front();
    const auto most = std::chrono::milliseconds(while_waiting ? 100 : 0);
    while (first.done.wait_for(most) != std::future_status::ready) {
      if (!while_waiting) return;
      while_waiting();
    }
    first.done.get();
    if (first.result->tokens > 0) {
      first.record.tokens = first.result->tokens;
      first.record.ce = first.result->ce;
      first.record.perplexity = std::exp(first.result->ce);
      recorder_.Record(first.record);
    }
    pending_.pop_front();
  }
}

}  // namespace spes::app
