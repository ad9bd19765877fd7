// Whole runs of settings beyond the paper's: the same bits for any number of workers, and what each
// is to move.
#include <gmock/gmock.h>

#include <map>
#include <string>

#include "analysis/hdf5/log_reader.h"
#include "tests/end_to_end/program.h"

namespace spes::end_to_end {
namespace {

struct Scheme {
  const char* name;
  const char* options;
};

class SchemeRuns : public ProgramTest {
 protected:
  SchemeRuns() { Write("tiny.yaml", TinyScenario()); }
  analysis::RunLog RunAndRead(const std::string& options, const std::string& log) const {
    const Outcome outcome = Run("tiny.yaml --output " + log + " " + options);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return analysis::ReadRunLog(Path(log));
  }
};

class Schemes : public SchemeRuns, public ::testing::WithParamInterface<Scheme> {};

constexpr const char* kInt4 =
    "{kind: int4, differences: true, error_feedback: true, skip_unchanged: true, zstd: 3}";

TEST_P(Schemes, EndWithTheSameWorldForAnyNumberOfWorkers) {
  const std::string options = std::string("--set sync.merge.interval=0 ") + GetParam().options;
  const analysis::RunLog one = RunAndRead(options + " --workers 1", "one.h5");
  const analysis::RunLog three = RunAndRead(options + " --workers 3", "three.h5");
  EXPECT_EQ(one.status, "complete");
  EXPECT_EQ(one.world_hash, three.world_hash);
  EXPECT_EQ(one.steps.size(), 4U * 8U) << "every node trains every step once";
  EXPECT_LT(one.evals.back().ce, one.evals.front().ce);
  std::int64_t parts = 0, all = 0;
  for (const auto& round : one.rounds) {
    parts += round.up_shared_bytes + round.up_expert_bytes + round.up_moment_bytes;
    all += round.up_bytes;
  }
  EXPECT_GT(parts, 0);
  EXPECT_LT(parts, all);
}

INSTANTIATE_TEST_SUITE_P(
    All, Schemes,
    ::testing::Values(
        Scheme{"DataParallel",
               "--set sync.method=data_parallel --set sync.every=1 --set sync.allocation=all"},
        Scheme{"FedAvg", "--set sync.allocation=all"},
        Scheme{"DiLoCo",
               "--set sync.allocation=all --set sync.reduction.shared.outer=true --set "
               "sync.reduction.experts.outer=true"},
        Scheme{"Streaming",
               "--set sync.allocation=all --set sync.fragments=2 --set sync.overlap=1 --set "
               "sync.keep_own=0.5"},
        Scheme{"Rotating", "--set sync.every=2 --set sync.rotate.every=1"},
        Scheme{"LoadAware",
               "--set sync.every=2 --set sync.allocation=load --set sync.rotate.every=2 --set "
               "sync.rotate.moments=kept"},
        Scheme{"Growing", "--set sync.first=1"},
        Scheme{"TwoIntervals", "--set sync.every=2 --set sync.experts_every=4"},
        Scheme{"AveragedMoments", "--set sync.moments=averaged --set sync.replicas=2"},
        Scheme{"Median",
               "--set sync.reduction.shared.kind=median --set "
               "sync.reduction.experts.kind=trimmed_mean --set sync.replicas=4"},
        Scheme{"Bias", "--set training.routing_bias=1 --set training.routing_bias_length=8"},
        Scheme{"Aligned",
               "--set sync.merge.interval=4 --set sync.merge.mode=aligned --set "
               "sync.merge.similarity=router --set sync.merge.decay=cosine"}),
    [](const auto& scheme) { return std::string(scheme.param.name); });

TEST_F(SchemeRuns, CodesAreTheSameForAllAndSmaller) {
  const std::string codec =
      std::string(" --set 'sync.codec.up=") + kInt4 + "' --set 'sync.codec.down=" + kInt4 + "'";
  const analysis::RunLog plain = RunAndRead("", "plain.h5");
  const analysis::RunLog one = RunAndRead("--workers 1" + codec, "one.h5");
  const analysis::RunLog four = RunAndRead("--workers 4" + codec, "four.h5");
  EXPECT_EQ(one.world_hash, four.world_hash);
  EXPECT_NE(one.world_hash, plain.world_hash);
  EXPECT_LT(one.rounds[0].up_expert_bytes, 0.15 * plain.rounds[0].up_expert_bytes);
  EXPECT_LT(one.rounds[0].down_expert_bytes, 0.15 * 4 / 3 * plain.rounds[0].down_expert_bytes)
      << "the owner's expert goes back to it too";
  EXPECT_NEAR(one.evals.back().ce, plain.evals.back().ce, 0.02 * plain.evals.back().ce);
  EXPECT_GT(one.rounds.back().end_s, 0);
}

// Shares by memory: two nodes with room for one expert of four, two with room for more.
TEST_F(SchemeRuns, SharesByMemory) {
  const analysis::RunLog log = RunAndRead(
      "--set sync.merge.interval=0 --set sync.allocation=memory --set nodes.count=0 --set "
      "'nodes.groups=[{count: 2, memory: 1 MiB}, {count: 2, memory: 64 MiB}]'",
      "memory.h5");
  EXPECT_EQ(log.status, "complete");
  std::map<int, std::int64_t> gradients;
  for (const auto& row : log.memory) {
    if (row.kind == "gradients") gradients[row.node] = row.predicted_bytes;
  }
  EXPECT_LT(gradients.at(0), gradients.at(3));
}

// The process takes what its table says, give or take a tenth, once the model outweighs the rest.
TEST_F(SchemeRuns, TheMemoryTableIsWhatTheProcessTakes) {
  const analysis::RunLog log = RunAndRead(
      "--workers 2 --set model.experts=16 --set model.width=256 --set model.heads=4 --set "
      "model.kv_heads=4 --set model.expert_width=256 --set nodes.groups.0.count=12 --set "
      "nodes.groups.1.count=4 --set "
      "sync.merge.interval=0 --set training.steps=4 --set sync.every=2 --set output.eval_every=0",
      "memory.h5");
  for (const auto& row : log.memory) {
    if (row.kind != "peak resident") continue;
    EXPECT_GT(row.measured_bytes, 0.7 * static_cast<double>(row.predicted_bytes));
    EXPECT_LT(row.measured_bytes, 1.1 * static_cast<double>(row.predicted_bytes));
  }
}

}  // namespace
}  // namespace spes::end_to_end
