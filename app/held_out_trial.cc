#include "app/held_out_trial.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "trainer/data/batch.h"
#include "trainer/eval/evaluator.h"

namespace spes::app {

namespace {

constexpr std::int64_t kSequences = 16;  // evaluated at once

// `samples` of them, evenly spaced.
std::vector<trainer::Batch> Thinned(const std::vector<trainer::Batch>& all, std::int64_t samples) {
  std::int64_t there = 0;
  for (const trainer::Batch& batch : all) there += batch.sequences;
  samples = std::min(samples, there);
  std::vector<trainer::Batch> thinned;
  std::int64_t seen = 0, taken = 0;
  for (const trainer::Batch& batch : all) {
    const std::int64_t row = batch.context + 1;
    for (std::int64_t i = 0; i < batch.sequences; ++i, ++seen) {
      if (taken == samples || seen < taken * there / samples) continue;
      if (taken++ % kSequences == 0) thinned.push_back({0, batch.context, {}});
      trainer::Batch& last = thinned.back();
      ++last.sequences;
      const auto first = batch.tokens.begin() + i * row;
      last.tokens.insert(last.tokens.end(), first, first + row);
    }
  }
  return thinned;
}

}  // namespace

void SetHeldOutTrial(const scenarios::Scenario& scenario, const trainer::Dataset& dataset,
                     trainer::TrustConfig& trust) {
  const std::int64_t tokens = scenario.sync.trust.held_out;
  if (tokens == 0) return;
  const std::int64_t context = scenario.training.context;
  const std::int64_t of_each = tokens / dataset.domains();
  const std::int64_t samples = std::max<std::int64_t>(1, (of_each + context - 1) / context);
  auto batches = std::make_shared<std::vector<trainer::Batch>>();
  for (int d = 0; d < dataset.domains(); ++d) {
    for (trainer::Batch& batch : Thinned(dataset.HeldOut(d, kSequences, context), samples)) {
      batches->push_back(std::move(batch));
    }
  }
  // Not cut short by the end of the run: half a trial would say something wrong of a node.
  trust.held_out = [model = scenario.model, batches](const trainer::World& world) {
    const std::atomic<bool> never{false};
    return trainer::Evaluate(model, world, *batches, never).ce;
  };
}

}  // namespace spes::app
