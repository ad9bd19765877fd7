#include "analysis/summary_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace spes::analysis {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

RunTotals Totals() {
  return {.status = RunStatus::kComplete,
          .world_hash = "0123456789abcdef0123456789abcdef",
          .plan = {.nodes = 2, .steps = 150, .rounds = 10},
          .rounds = 10,
          .steps = 150,
          .tokens = 2457600,
          .virtual_s = 200,
          .nodes = {{.node = 0,
                     .rounds = 10,
                     .compute_s = 120,
                     .up_s = 10,
                     .wait_s = 50,
                     .down_s = 20,
                     .up_bytes = 10 * kMiB,
                     .down_bytes = 160 * kMiB},
                    {.node = 1,
                     .rounds = 10,
                     .compute_s = 60,
                     .up_s = 30,
                     .wait_s = 50,
                     .down_s = 60,
                     .up_bytes = 10 * kMiB,
                     .down_bytes = 240 * kMiB}},
          .evals =
              {{.round = 10, .domain = "gcide", .tokens = 40960, .ce = 2.15, .perplexity = 8.585},
               {.round = 10, .domain = "wordnet", .tokens = 4096, .ce = 2.18, .perplexity = 8.846}},
          .node_memory_bytes = {300.0 * kMiB, 340.0 * kMiB},
          .process_memory_bytes = 1.5 * 1024 * kMiB,
          .busiest_link = LinkTotals{.name = "node 1 up", .wire_bytes = 11, .utilisation = 0.4567}};
}

SummaryContext Context() {
  return {
      .scenario = "16node_internet",
      .log_path = "results/runs/16node_internet.h5",
      .world_path = "results/runs/16node_internet.safetensors",
      .baselines = {{.domain = "wordnet", .unigram = 3.02, .bigram = 2.357},
                    {.domain = "gcide", .unigram = 3.105, .bigram = 2.445}},
      .full_round_bytes = 40 * kMiB,
      .full_memory_bytes = 1280 * kMiB,
      .wall_parts = {{"set-up", 5}, {"training", 60}},
      .wall_s = 100,
      .notes = {"time, bytes and memory are charged as models/spes_2b.yaml on l40s_48gb, while a "
                "smaller model is trained"}};
}

TEST(SummaryTextTest, WholeRun) {
  EXPECT_EQ(SummaryText(Totals(), Context()),
            R"(16node_internet: complete
10 of 10 rounds, 150 of 150 steps per node, 2 nodes, 2.46 M tokens, 3 min 20 s of virtual time

Held-out loss, nats/token  cross-entropy    perplexity        bigram       unigram        tokens
  gcide                           2.1500         8.585        2.4450        3.1050         40960
  wordnet                         2.1800         8.846        2.3570        3.0200          4096

Virtual time per node               mean               share             min … max
  compute                         90.0 s              45.0 %          60.0 s … 120.0 s
  upload                          20.0 s              10.0 %          10.0 s … 30.0 s
  wait                            50.0 s              25.0 %
  download                        40.0 s              20.0 %          20.0 s … 60.0 s
  total                          200.0 s             100.0 %
  compute utilisation                                 45.0 %          30.0 % … 60.0 %

Traffic per node                    mean   of full averaging             min … max
  up                            10.0 MiB               2.5 %
  down                           200 MiB              50.0 %         160 MiB … 240 MiB
  full averaging, each way       400 MiB

Busiest link              node 1 up: 45.7 % used over the run

Memory                              mean    of full training             min … max
  one node, predicted            320 MiB              25.0 %         300 MiB … 340 MiB
  training everything           1.25 GiB
  this program, largest         1.50 GiB

Wall time                                              share
  set-up                           5.0 s               5.0 %
  training                        60.0 s              60.0 %
  other                           35.0 s              35.0 %
  total                          100.0 s             100.0 %

world   0123456789abcdef0123456789abcdef
saved   results/runs/16node_internet.safetensors
log     results/runs/16node_internet.h5
note    time, bytes and memory are charged as models/spes_2b.yaml on l40s_48gb, while a smaller
        model is trained
)");
}

TEST(SummaryTextTest, WhatWentWrong) {
  RunTotals run = Totals();
  run.faults = {{"crash", 3}, {"full_disk", 1}};
  EXPECT_THAT(SummaryText(run, Context()),
              testing::HasSubstr("\nFaults                    3 crash, 1 full_disk\n\n"));
  run.down_s = 75;
  EXPECT_THAT(SummaryText(run, Context()),
              testing::HasSubstr(" 1 full_disk; processes were down for 1 min 15 s\n\n"));
}

TEST(SummaryTextTest, WithoutARoundOnlyWhatIsKnown) {
  RunTotals run;
  run.status = RunStatus::kInterrupted;
  run.plan = {.nodes = 16, .steps = 150, .rounds = 10};
  EXPECT_EQ(SummaryText(run, {.scenario = "tiny", .log_path = "a folder/run.h5"}),
            R"(tiny: interrupted
0 of 10 rounds, 0 of 150 steps per node, 16 nodes, 0 tokens, 0 s of virtual time

log     a folder/run.h5
)");
}

TEST(SummaryTextTest, ABaselineThatIsNotKnownIsADash) {
  RunTotals run;
  run.evals = {{.domain = "a", .tokens = 10, .ce = 1, .perplexity = 2.718},
               {.domain = "b", .tokens = 10, .ce = 1, .perplexity = 2.719}};
  const std::string text =
      SummaryText(run, {.baselines = {{.domain = "a", .unigram = NAN, .bigram = NAN}}});
  EXPECT_NE(text.find("2.718             –             –            10\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("2.719             –             –            10\n"), std::string::npos)
      << text;
  EXPECT_EQ(text.find("nan"), std::string::npos) << text;
}

TEST(SummaryTextTest, LinesKeepWithinAHundredColumns) {
  SummaryContext context = Context();
  context.notes.push_back(std::string(60, 'x') + " " + std::string(60, 'y'));
  RunTotals run = Totals();
  run.evals[0].domain = std::string(32, 'd');
  run.nodes[0].compute_s = 1e7;
  run.busiest_link->name = std::string(30, 's') + " → " + std::string(30, 't');
  const std::string text = SummaryText(run, context);
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    ASSERT_NE(end, std::string::npos);
    std::size_t columns = 0;
    for (std::size_t i = begin; i < end; ++i) columns += (text[i] & 0xC0) != 0x80;
    EXPECT_LE(columns, 100u) << text.substr(begin, end - begin);
    begin = end + 1;
  }
}

TEST(ProgressLineTest, KeepsItsColumns) {
  EXPECT_EQ(
      ProgressLine(
          {.round = 3, .rounds = 10, .virtual_s = 83, .done = 0.25, .tokens = 123400, .ce = 2.345},
          10),
      "round  3/10   virtual  1 min 23 s    12.3 k tokens/s   training loss 2.3450   left      "
      "30.0 s");
  EXPECT_EQ(ProgressLine({.round = 1, .rounds = 10, .ce = NAN}, 0),
            "round  1/10   virtual         0 s         0 tokens/s   training loss      –   left    "
            "       –");
}

TEST(ProgressLineTest, WhatWasDoneBeforeDoesNotMakeThisProcessFaster) {
  EXPECT_EQ(ProgressLine({.round = 6,
                          .rounds = 10,
                          .virtual_s = 83,
                          .done = 0.6,
                          .done_before = 0.5,
                          .tokens = 6000,
                          .tokens_before = 5000,
                          .ce = 2},
                         10),
            "round  6/10   virtual  1 min 23 s       100 tokens/s   training loss 2.0000   left    "
            "  40.0 s");
}

}  // namespace
}  // namespace spes::analysis
