// Held-out losses of published worlds, in the background.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "analysis/recorder.h"
#include "trainer/data/dataset.h"
#include "trainer/eval/evaluator.h"
#include "trainer/protocol/coordinator.h"
#include "trainer/runtime/compute_pool.h"

namespace spes::app {

// Evaluates on the pool's idle threads: charged no virtual time, delaying nobody. Records come in
// the order of the rounds. Used from one thread.
class Evaluations {
 public:
  // On `device`, in the model's own type. Reference arguments must outlive the object, which must
  // outlive the pool's jobs.
  Evaluations(trainer::ModelConfig model, std::string device,
              std::shared_ptr<const trainer::Dataset> dataset, std::int64_t context,
              trainer::ComputePool& pool, analysis::Recorder& recorder,
              const std::atomic<bool>& stop);

  void Submit(const trainer::PublishedRound& published);

  // Records what has been finished; with `while_waiting`, which is called about every 0.1 s, all
  // that was submitted. Rethrows a job's exception.
  void Collect(const std::function<void()>& while_waiting = {});

 private:
  struct Pending {
    analysis::EvalRecord record;
    std::shared_ptr<trainer::EvalResult> result;
    std::future<void> done;
  };

  trainer::ModelConfig model_;
  std::string device_;
  std::shared_ptr<const trainer::Dataset> dataset_;
  trainer::ComputePool& pool_;
  analysis::Recorder& recorder_;
  const std::atomic<bool>& stop_;
  std::vector<std::shared_ptr<const std::vector<trainer::Batch>>> held_out_;  // [domain]
  std::deque<Pending> pending_;
};

}  // namespace spes::app
