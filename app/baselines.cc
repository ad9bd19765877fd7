#include "app/baselines.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <limits>
#include <utility>

#include "sim/units.h"

namespace spes::app {

void Baselines::Begin(const std::shared_ptr<const trainer::Dataset>& dataset, int context,
                      trainer::ComputePool& pool) {
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  for (int d = 0; d < dataset->domains(); ++d) {
    auto result = std::make_shared<analysis::Baseline>();
    auto entropy = std::make_shared<double>(kUnknown);
    result->domain = dataset->domain(d);
    result->unigram = result->bigram = kUnknown;
    auto done = pool.Submit(sim::kNever, [dataset, d, context, result, entropy] {
      const trainer::BaselineLoss loss = dataset->Baseline(d, context);
      result->unigram = loss.unigram;
      result->bigram = loss.bigram;
      *entropy = loss.entropy;
    });
    jobs_.push_back({std::move(done), result, entropy});
  }
}

void Baselines::Wait() {
  for (Job& job : jobs_) job.done.get();
}

void Baselines::AddTo(analysis::SummaryContext& context) const {
  for (const Job& job : jobs_) {
    const bool done = !job.done.valid() ||
                      job.done.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
    if (!done) continue;
    context.baselines.push_back(*job.result);
    if (!std::isfinite(*job.entropy)) continue;
    context.notes.push_back(
        fmt::format("{}: the language's entropy is {:.4f} nats per token, the least that any model "
                    "can reach",
                    job.result->domain, *job.entropy));
  }
}

}  // namespace spes::app
