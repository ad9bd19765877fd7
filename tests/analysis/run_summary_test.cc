#include "analysis/run_summary.h"

#include <gtest/gtest.h>

#include <cmath>

namespace spes::analysis {
namespace {

TEST(RunSummaryTest, ShowsProgressFromTheFirstStepOn) {
  RunSummary summary({.nodes = 2, .steps = 10, .rounds = 5});
  EXPECT_EQ(summary.progress().round, 1);
  EXPECT_EQ(summary.progress().rounds, 5);
  EXPECT_EQ(summary.progress().done, 0);
  EXPECT_TRUE(std::isnan(summary.progress().ce));
  summary.Record(
      StepRecord{.node = 0, .step = 1, .round = 1, .virtual_s = 2, .tokens = 8, .ce = 9});
  summary.Record(
      StepRecord{.node = 0, .step = 2, .round = 1, .virtual_s = 4, .tokens = 8, .ce = 5});
  summary.Record(
      StepRecord{.node = 1, .step = 1, .round = 1, .virtual_s = 3, .tokens = 8, .ce = 7});
  const Progress progress = summary.progress();
  EXPECT_EQ(progress.virtual_s, 4);
  EXPECT_EQ(progress.done, 3.0 / 20);
  EXPECT_EQ(progress.tokens, 24);
  EXPECT_EQ(progress.ce, 6);  // the latest of node 0, and node 1
}

TEST(RunSummaryTest, RoundUnderWayNeverPassesTheLast) {
  RunSummary summary({.nodes = 1, .steps = 2, .rounds = 2});
  summary.Record(StepRecord{.step = 1, .round = 1});
  summary.Record(RoundRecord{.round = 1, .end_s = 5});
  summary.Record(StepRecord{.step = 2, .round = 2});
  EXPECT_EQ(summary.progress().round, 2);
  summary.Record(RoundRecord{.round = 2, .end_s = 9});
  EXPECT_EQ(summary.progress().round, 2);
  EXPECT_EQ(summary.progress().done, 1);
  EXPECT_EQ(summary.progress().virtual_s, 9);
  EXPECT_EQ(summary.totals().rounds, 2);
  EXPECT_EQ(summary.totals().steps, 2);
}

TEST(RunSummaryTest, AddsUpNodesOverRounds) {
  RunSummary summary({.nodes = 3, .steps = 2, .rounds = 2});
  for (const int round : {1, 2}) {
    summary.Record(NodeRoundRecord{.round = round,
                                   .node = 2,
                                   .start_s = 100.0 * round,
                                   .compute_s = 1,
                                   .up_s = 2,
                                   .wait_s = 3,
                                   .down_s = 4,
                                   .up_bytes = 5,
                                   .down_bytes = 6});
  }
  summary.Record(NodeRoundRecord{.round = 2, .node = 0, .compute_s = 7});
  const RunTotals totals = summary.totals();
  ASSERT_EQ(totals.nodes.size(), 2u);
  EXPECT_EQ(totals.nodes[0].node, 0);
  EXPECT_EQ(totals.nodes[0].rounds, 1);
  EXPECT_EQ(totals.nodes[0].total_s(), 7);
  EXPECT_EQ(totals.nodes[1].node, 2);
  EXPECT_EQ(totals.nodes[1].rounds, 2);
  EXPECT_EQ(totals.nodes[1].compute_s, 2);
  EXPECT_EQ(totals.nodes[1].up_s, 4);
  EXPECT_EQ(totals.nodes[1].wait_s, 6);
  EXPECT_EQ(totals.nodes[1].down_s, 8);
  EXPECT_EQ(totals.nodes[1].up_bytes, 10);
  EXPECT_EQ(totals.nodes[1].down_bytes, 12);
  EXPECT_EQ(totals.virtual_s, 210);  // the last download ends after the round
}

TEST(RunSummaryTest, KeepsTheLatestEvaluationOfEachDomain) {
  RunSummary summary({});
  summary.Record(EvalRecord{.round = 0, .domain = "b", .ce = 5});
  summary.Record(EvalRecord{.round = 0, .domain = "a", .ce = 6});
  summary.Record(EvalRecord{.round = 4, .domain = "a", .ce = 2});
  summary.Record(EvalRecord{.round = 2, .domain = "a", .ce = 3});
  const RunTotals totals = summary.totals();
  ASSERT_EQ(totals.evals.size(), 2u);
  EXPECT_EQ(totals.evals[0].domain, "b");
  EXPECT_EQ(totals.evals[1].ce, 2);
}

TEST(RunSummaryTest, FindsTheBusiestLink) {
  RunSummary summary({});
  EXPECT_FALSE(summary.totals().busiest_link);
  const auto record = [&](int link, double start_s, double end_s, std::int64_t capacity,
                          std::int64_t wire) {
    summary.Record(LinkRecord{.start_s = start_s,
                              .end_s = end_s,
                              .link = link,
                              .name = "link " + std::to_string(link),
                              .capacity_bytes = capacity,
                              .wire_bytes = wire});
  };
  record(0, 0, 10, 1000, 500);
  record(1, 0, 10, 100000, 9000);  // more bytes, but far from full
  record(2, 4, 6, 200, 190);       // full, but not for long
  record(0, 10, 20, 1000, 100);
  LinkTotals busiest = summary.totals().busiest_link.value();
  EXPECT_EQ(busiest.name, "link 0");
  EXPECT_EQ(busiest.wire_bytes, 600);
  EXPECT_DOUBLE_EQ(busiest.utilisation, 0.3);
  summary.Record(RoundRecord{.round = 1, .end_s = 60});  // silent since
  EXPECT_DOUBLE_EQ(summary.totals().busiest_link->utilisation, 0.1);
  record(2, 50, 52, 200, 500);
  EXPECT_EQ(summary.totals().busiest_link->name, "link 2");
}

TEST(RunSummaryTest, ALinkWithoutCapacityIsNotTheBusiest) {
  RunSummary summary({});
  summary.Record(LinkRecord{.end_s = 1, .name = "down", .wire_bytes = 50, .utilisation = NAN});
  EXPECT_FALSE(summary.totals().busiest_link);
}

TEST(RunSummaryTest, CountsFaultsAndTheTimeThatProcessesWereDown) {
  RunSummary summary({});
  const auto record = [&](double at_s, int node, const char* kind) {
    summary.Record(EventRecord{.virtual_s = at_s, .node = node, .kind = kind});
  };
  record(1, 0, "join");
  record(1, 0, "fault/crash");
  record(1, 0, "down");
  record(2, -1, "fault/full_disk");
  record(3, -1, "down");
  record(5, 0, "fault/over");
  record(5, 0, "up");
  record(6, 1, "fault/crash");
  record(6, 1, "down");
  record(7, -1, "up");
  summary.Record(RoundRecord{.round = 1, .end_s = 60});
  const RunTotals totals = summary.totals();
  EXPECT_EQ(totals.faults, (std::map<std::string, int>{{"crash", 2}, {"full_disk", 1}}));
  EXPECT_DOUBLE_EQ(totals.down_s, 4 + 4 + 54);  // node 1 is down to the end
}

TEST(RunSummaryTest, KeepsMemoryAndTheEnd) {
  RunSummary summary({});
  summary.Record(MemoryRecord{.node = 1, .kind = "x", .predicted_bytes = 5, .measured_bytes = -1});
  summary.Record(MemoryRecord{.node = 0, .kind = "x", .predicted_bytes = 3, .measured_bytes = -1});
  summary.Record(MemoryRecord{.node = 0, .kind = "y", .predicted_bytes = 4, .measured_bytes = -1});
  summary.Record(MemoryRecord{.node = -1, .kind = "x", .predicted_bytes = 90});
  summary.Record(MemoryRecord{.node = -2, .kind = "x", .predicted_bytes = -1, .measured_bytes = 8});
  EXPECT_EQ(summary.totals().status, RunStatus::kRunning);
  summary.Finish(RunStatus::kInterrupted, "hash");
  EXPECT_EQ(summary.totals().status, RunStatus::kInterrupted);
  EXPECT_EQ(summary.totals().world_hash, "hash");
  EXPECT_EQ(summary.totals().node_memory_bytes, (std::vector<double>{7, 5}));
  EXPECT_EQ(summary.totals().process_memory_bytes, 8);
}

}  // namespace
}  // namespace spes::analysis
