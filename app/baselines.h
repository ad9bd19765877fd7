// What simple models of the text lose on it, to hold a run's losses against.
#pragma once

#include <future>
#include <memory>
#include <vector>

#include "analysis/summary_text.h"
#include "trainer/data/dataset.h"
#include "trainer/runtime/compute_pool.h"

namespace spes::app {

// Computed behind everything else, in the pool.
class Baselines {
 public:
  void Begin(const std::shared_ptr<const trainer::Dataset>& dataset, int context,
             trainer::ComputePool& pool);
  void Wait();
  // Those that are done, with a note on the entropy of a synthetic language.
  void AddTo(analysis::SummaryContext& context) const;

 private:
  struct Job {
    std::future<void> done;
    std::shared_ptr<analysis::Baseline> result;
    std::shared_ptr<double> entropy;  // of a synthetic language; otherwise NaN
  };
  std::vector<Job> jobs_;
};

}  // namespace spes::app
