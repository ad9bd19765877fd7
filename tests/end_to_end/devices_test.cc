// What a run's devices change, and what is said where one is not there.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>

#include "analysis/hdf5/log_reader.h"
#include "tests/end_to_end/program.h"

namespace spes::end_to_end {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class Devices : public ProgramTest {
 protected:
  Devices() { Write("tiny.yaml", TinyScenario()); }

  analysis::RunLog RunAndRead(const std::string& options) const {
    const Outcome outcome = Run("tiny.yaml --quiet --output run.h5 " + options);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    return analysis::ReadRunLog(Path("run.h5"));
  }
};

TEST_F(Devices, AGpuWhereThereIsNoneIsRefused) {
  for (const char* asked : {"--devices cuda:0", "--set devices=[cuda:0]"}) {
    const Outcome outcome = Run(std::string("tiny.yaml --output run.h5 ") + asked);
    if (outcome.code == 0) GTEST_SKIP() << "this machine has a GPU";
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_THAT(outcome.err, StartsWith("spes-sim: devices: cuda:0: "));
    EXPECT_THAT(outcome.err, AnyOf(HasSubstr("run ./dev setup --cuda"), HasSubstr("no GPU")));
    EXPECT_EQ(outcome.out, "");
    EXPECT_FALSE(std::filesystem::exists(folder / "run.h5"));
  }
}

TEST_F(Devices, SeveralOfANodeGiveTheSameWorld) {
  const std::string micro = "--set training.sequences=3 --set training.micro_sequences=1 ";
  const analysis::RunLog one = RunAndRead(micro);
  for (const char* several :
       {"--devices cpu,cpu --set nodes.devices_per_node=2",
        "--devices cpu,cpu,cpu --set nodes.devices_per_node=3", "--devices cpu,cpu"}) {
    const analysis::RunLog log = RunAndRead(micro + several);
    EXPECT_EQ(log.world_hash, one.world_hash) << several;
    EXPECT_EQ(log.evals.back().ce, one.evals.back().ce) << several;
  }
}

TEST_F(Devices, Bfloat16LearnsWhatFloat32Does) {
  const analysis::RunLog wide = RunAndRead(""),
                         narrow = RunAndRead("--set training.compute_dtype=bfloat16");
  EXPECT_NE(wide.world_hash, narrow.world_hash);
  ASSERT_EQ(wide.evals.size(), narrow.evals.size());
  EXPECT_EQ(wide.evals.front().ce, narrow.evals.front().ce);  // evaluation is in float32
  EXPECT_NEAR(wide.evals.back().ce, narrow.evals.back().ce, 0.01);
  // A checkpoint of float32 values, as ever; the same bits on every run.
  EXPECT_EQ(RunAndRead("--set training.compute_dtype=bfloat16 --workers 1").world_hash,
            narrow.world_hash);
}

}  // namespace
}  // namespace spes::end_to_end
