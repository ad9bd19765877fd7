// What a table of many runs says of one.
#include "analysis/run_figures.h"

#include <gtest/gtest.h>

#include <cmath>

namespace spes::analysis {
namespace {

EvalRecord Eval(std::int32_t round, const std::string& domain, double ce) {
  return {.round = round,
          .virtual_s = 10.0 * round,
          .domain = domain,
          .ce = ce,
          .bytes_so_far = 1000 * round};
}

// Two domains over four evaluations: their means are 5, 3, 2.5 and 3.
RunLog Sample() {
  RunLog log;
  const double a[] = {6, 4, 2, 2.5}, b[] = {4, 2, 3, 3.5};
  for (int round = 0; round < 4; ++round) {
    log.evals.push_back(Eval(round, "a", a[round]));
    log.evals.push_back(Eval(round, "b", b[round]));
  }
  return log;
}

TEST(RunFigures, LossesAreTheLastAndTheLowest) {
  const RunFigures figures = FiguresOf(Sample(), {});
  EXPECT_EQ(figures.losses.size(), 2u);
  EXPECT_EQ(figures.losses.at("a").last, 2.5);
  EXPECT_EQ(figures.losses.at("a").best, 2);
  EXPECT_EQ(figures.losses.at("b").last, 3.5);
  EXPECT_EQ(figures.losses.at("b").best, 2);
  EXPECT_EQ(figures.mean_loss.last, 3);
  EXPECT_EQ(figures.mean_loss.best, 2.5);
  EXPECT_TRUE(std::isnan(figures.target_s));
  EXPECT_TRUE(std::isnan(figures.target_bytes));
}

TEST(RunFigures, ATargetIsReachedByTheFirstEvaluationWithinIt) {
  const auto reached = [](const std::map<std::string, double>& target) {
    const RunFigures figures = FiguresOf(Sample(), target);
    if (!std::isnan(figures.target_s)) {
      EXPECT_EQ(figures.target_bytes, 100 * figures.target_s);
    }
    return figures.target_s;
  };
  EXPECT_EQ(reached({{"", 3}}), 10);
  EXPECT_EQ(reached({{"", 2.9}}), 20);
  EXPECT_EQ(reached({{"", 6}}), 0);
  EXPECT_TRUE(std::isnan(reached({{"", 2.4}})));
  EXPECT_EQ(reached({{"a", 2.5}}), 20);
  EXPECT_EQ(reached({{"b", 2}}), 10);
  EXPECT_EQ(reached({{"a", 2}, {"b", 3}}), 20);
  EXPECT_TRUE(std::isnan(reached({{"a", 2}, {"b", 2}})));
  EXPECT_TRUE(std::isnan(reached({{"c", 9}})));
}

TEST(RunFigures, ADivergedEvaluationIsNotTheBest) {
  RunLog log;
  log.evals = {Eval(0, "a", 4), Eval(1, "a", std::nan(""))};
  const RunFigures figures = FiguresOf(log, {{"", 4.5}});
  EXPECT_EQ(figures.losses.at("a").best, 4);
  EXPECT_TRUE(std::isnan(figures.losses.at("a").last));
  EXPECT_EQ(figures.target_s, 0);
}

TEST(RunFigures, AddUpNodesAndTheirMemory) {
  RunLog log;
  for (int node = 0; node < 2; ++node) {
    for (int round = 1; round <= 3; ++round) {
      log.node_rounds.push_back({.round = round,
                                 .node = node,
                                 .start_s = 10.0 * round,
                                 .compute_s = 5,
                                 .down_s = 1.0 + node,
                                 .up_bytes = 100 * (node + 1),
                                 .down_bytes = 7});
      log.steps.push_back({.node = node, .step = round, .wall_s = 0.25, .tokens = 50});
    }
    log.memory.push_back({node, "parameters", 1000, -1});
    log.memory.push_back({node, "moments", 500 * node, -1});
  }
  log.memory.push_back({-2, "peak resident", -1, 9999});
  for (int round = 1; round <= 3; ++round) log.rounds.push_back({.round = round});
  log.wall_s = 12;
  const RunFigures figures = FiguresOf(log, {});
  EXPECT_EQ(figures.rounds, 3);
  EXPECT_EQ(figures.steps, 3);
  EXPECT_EQ(figures.tokens, 300);
  EXPECT_EQ(figures.virtual_s, 37);
  EXPECT_EQ(figures.up_bytes, 900);
  EXPECT_EQ(figures.down_bytes, 42);
  EXPECT_EQ(figures.node_up_bytes, 450);
  EXPECT_EQ(figures.node_down_bytes, 21);
  EXPECT_EQ(figures.node_memory_bytes, 1250);
  EXPECT_EQ(figures.node_memory_max_bytes, 1500);
  EXPECT_EQ(figures.process_memory_bytes, 9999);
  EXPECT_EQ(figures.wall_s, 12);
  EXPECT_EQ(figures.work_s, 1.5);
}

TEST(RunFigures, AnEmptyLogHasNone) {
  const RunFigures figures = FiguresOf({}, {{"", 1}});
  EXPECT_TRUE(figures.losses.empty());
  EXPECT_TRUE(std::isnan(figures.mean_loss.last) && std::isnan(figures.target_s));
  EXPECT_EQ(figures.virtual_s, 0);
  EXPECT_EQ(figures.node_up_bytes, 0);
}

}  // namespace
}  // namespace spes::analysis
