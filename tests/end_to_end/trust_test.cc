// One of eight nodes lies: the loss of whole runs with and without a defence. The figures are those
// of results/trust, at a smaller size.
#include <gmock/gmock.h>

#include <algorithm>
#include <string>

#include "analysis/hdf5/log_reader.h"
#include "tests/end_to_end/program.h"

namespace spes::end_to_end {
namespace {

using ::testing::HasSubstr;

constexpr const char* kBound = " --set sync.trust.norm_bound=3";
constexpr const char* kTrial = " --set sync.trust.held_out=512";

class TrustTest : public ProgramTest {
 protected:
  TrustTest() {
    Write("eight.yaml", R"(model: {vocabulary: 32, layers: 1, width: 32, heads: 2, kv_heads: 2,
        experts: 8, experts_per_token: 2, expert_width: 32}
data:
  domains: [{name: synthetic, synthetic: true, synthetic_tokens: 100000}]
  eval_tokens: 2048
training: {steps: 48, sequences: 4, context: 32, warmup_steps: 8, lr: 1e-2}
nodes: {groups: [{count: 7}, {count: 1}]}
sync: {every: 6}
network: {fidelity: ideal}
output: {eval_every: 0}
)");
  }
  analysis::RunLog RunOf(const std::string& poison, const std::string& options) const {
    const Outcome outcome = Run("eight.yaml --quiet --output run.h5 --set nodes.groups.1.poison='" +
                                poison + "'" + options);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return analysis::ReadRunLog(Path("run.h5"));
  }
  static double Loss(const analysis::RunLog& log) { return log.evals.back().ce; }
  static int Events(const analysis::RunLog& log, const std::string& kind) {
    return static_cast<int>(std::count_if(log.events.begin(), log.events.end(),
                                          [&](const auto& e) { return e.kind == kind; }));
  }
};

TEST_F(TrustTest, NobodyIsRefusedAmongHonestNodes) {
  const analysis::RunLog plain = RunOf("{}", "");
  const analysis::RunLog guarded = RunOf("{}", std::string(kBound) + kTrial);
  EXPECT_EQ(guarded.world_hash, plain.world_hash);
  EXPECT_EQ(Events(guarded, "distrusted"), 0);
  EXPECT_GT(guarded.rounds.back().end_s, plain.rounds.back().end_s) << "trials take time";
}

TEST_F(TrustTest, ALargeLieIsFoundByItsSizeAndByItsTrial) {
  const std::string scale = "{kind: scale, factor: 30}";
  const double honest = Loss(RunOf("{}", ""));
  const double undefended = Loss(RunOf(scale, ""));
  const analysis::RunLog bound = RunOf(scale, kBound);
  const analysis::RunLog trial = RunOf(scale, kTrial);
  EXPECT_GT(undefended, honest + 0.1);
  EXPECT_LT(Loss(bound), honest + 0.05);
  EXPECT_LT(Loss(trial), honest + 0.05);
  EXPECT_EQ(Events(bound, "distrusted"), 3);
  EXPECT_EQ(Events(bound, "quarantine"), 1);
  EXPECT_EQ(Events(trial, "quarantine"), 1);
}

TEST_F(TrustTest, ASignThatIsFlippedIsFoundByItsTrialAlone) {
  const std::string flip = "{kind: sign_flip}";
  const double honest = Loss(RunOf("{}", ""));
  const double undefended = Loss(RunOf(flip, ""));
  const analysis::RunLog bound = RunOf(flip, kBound);
  const analysis::RunLog trial = RunOf(flip, kTrial);
  EXPECT_EQ(Events(bound, "distrusted"), 0);
  EXPECT_EQ(Loss(bound), undefended);
  EXPECT_EQ(Events(trial, "quarantine"), 1);
  EXPECT_GT(undefended, honest + 0.03);
  EXPECT_LT(Loss(trial), undefended - 0.03);
}

TEST_F(TrustTest, AnyNumberOfWorkersFindsTheSame) {
  const std::string poison = "{kind: scale, factor: 30, after: 2}";
  const std::string options = std::string(kBound) + kTrial;
  const analysis::RunLog one = RunOf(poison, options + " --workers 1");
  const analysis::RunLog four = RunOf(poison, options + " --workers 4");
  EXPECT_EQ(one.world_hash, four.world_hash);
  EXPECT_EQ(Events(one, "quarantine"), 1);
}

// Every node a process of its own: whoever is quarantined ends with an error, the others go on, and
// the world is that of the simulation.
TEST_F(TrustTest, OverTcpALiarIsShutOut) {
  const std::string poison = "{kind: sign_flip, factor: 5}";
  const std::string options = " --set sync.trust.strikes=2" + std::string(kTrial);
  const analysis::RunLog simulated = RunOf(poison, options);
  const analysis::RunLog real =
      RunOf(poison, options + " --transport tcp --set output.journal=journal");
  EXPECT_EQ(real.status, "complete");
  EXPECT_EQ(real.world_hash, simulated.world_hash);
  EXPECT_EQ(Events(real, "quarantine"), 1);
  EXPECT_THAT(Read("journal/node-7.txt"), HasSubstr("the coordinator trusts node 7 no more"));
}

}  // namespace
}  // namespace spes::end_to_end
