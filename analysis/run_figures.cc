#include "analysis/run_figures.h"

#include <algorithm>
#include <cmath>

#include "analysis/run_summary.h"
#include "analysis/statistics.h"

namespace spes::analysis {

namespace {

// One evaluation of the world.
struct Evaluation {
  double virtual_s = 0;
  std::int64_t bytes = 0;
  std::map<std::string, double> ce;  // by domain, and the mean under ""
};

// By round.
std::map<std::int32_t, Evaluation> Evaluations(const RunLog& log) {
  std::map<std::int32_t, Evaluation> evaluations;
  for (const EvalRecord& r : log.evals) {
    Evaluation& evaluation = evaluations[r.round];
    evaluation.virtual_s = r.virtual_s;
    evaluation.bytes = r.bytes_so_far;
    evaluation.ce[r.domain] = r.ce;
  }
  for (auto& [round, evaluation] : evaluations) {
    double sum = 0;
    for (const auto& [domain, ce] : evaluation.ce) sum += ce;
    evaluation.ce[""] = sum / static_cast<double>(evaluation.ce.size());
  }
  return evaluations;
}

bool Reaches(const Evaluation& evaluation, const std::map<std::string, double>& target) {
  return std::ranges::all_of(target, [&](const auto& loss) {
    const auto found = evaluation.ce.find(loss.first);
    return found != evaluation.ce.end() && found->second <= loss.second;
  });
}

}  // namespace

RunFigures FiguresOf(const RunLog& log, const std::map<std::string, double>& target) {
  RunFigures figures;
  for (const auto& [round, evaluation] : Evaluations(log)) {
    for (const auto& [domain, ce] : evaluation.ce) {
      LossFigures& loss = domain.empty() ? figures.mean_loss : figures.losses[domain];
      loss.last = ce;
      loss.best = std::fmin(loss.best, ce);  // NaN gives way
    }
    if (!target.empty() && std::isnan(figures.target_s) && Reaches(evaluation, target)) {
      figures.target_s = evaluation.virtual_s;
      figures.target_bytes = static_cast<double>(evaluation.bytes);
    }
  }

  RunSummary summary{RunPlan{}};
  const auto add = [&](const auto& rows) {
    for (const auto& row : rows) summary.Record(row);
  };
  add(log.steps);
  add(log.rounds);
  add(log.node_rounds);
  add(log.memory);
  const RunTotals totals = summary.totals();
  figures.rounds = totals.rounds;
  figures.steps = totals.steps;
  figures.tokens = totals.tokens;
  figures.virtual_s = totals.virtual_s;
  for (const NodeTotals& node : totals.nodes) {
    figures.up_bytes += node.up_bytes;
    figures.down_bytes += node.down_bytes;
  }
  const auto nodes = static_cast<double>(totals.nodes.size());
  figures.node_up_bytes = Share(static_cast<double>(figures.up_bytes), nodes);
  figures.node_down_bytes = Share(static_cast<double>(figures.down_bytes), nodes);
  const Spread memory = SpreadOf(totals.node_memory_bytes);
  figures.node_memory_bytes = memory.mean;
  figures.node_memory_max_bytes = memory.max;
  figures.wall_s = log.wall_s;
  for (const StepRecord& step : log.steps) figures.work_s += step.wall_s;
  figures.process_memory_bytes = totals.process_memory_bytes;
  return figures;
}

}  // namespace spes::analysis
