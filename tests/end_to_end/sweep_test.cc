// A study's runs: each once, whatever happens, and one table of them.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "analysis/hdf5/log_reader.h"
#include "tests/end_to_end/sweep_testing.h"

namespace spes::end_to_end {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SweepTest : public SweepTestBase {};

TEST_F(SweepTest, RunsEachOnceAndCollectsATable) {
  Write("study.yaml", TinyStudy("out"));
  const Outcome status = Run("sweep status study.yaml");
  EXPECT_EQ(status.code, 0) << status.err;
  EXPECT_THAT(status.out, HasSubstr("waiting        4\n"));
  EXPECT_FALSE(Exists("out"));

  const Outcome first = Run("sweep study.yaml --jobs 2");
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr("study: 4 of 4 runs finished, 0 of them before"));
  EXPECT_THAT(first.err, HasSubstr("4 of 4: "));
  const std::string name = "every=2_seed=1";
  for (const char* ending : {".h5", ".safetensors", ".yaml", ".txt"}) {
    EXPECT_TRUE(Exists("out/" + name + ending)) << ending;
  }
  EXPECT_FALSE(Exists("out/" + name + ".failed"));
  EXPECT_TRUE(std::filesystem::is_empty(folder / "out/unfinished"));
  EXPECT_THAT(Read("out/" + name + ".txt"), HasSubstr(name + ": complete"));
  EXPECT_THAT(Run("sweep status study.yaml").out, HasSubstr("finished       4\n"));

  const auto written = std::filesystem::last_write_time(folder / ("out/" + name + ".h5"));
  const Outcome second = Run("sweep study.yaml");
  EXPECT_EQ(second.code, 0);
  EXPECT_THAT(second.out, HasSubstr("4 of 4 runs finished, 4 of them before"));
  EXPECT_EQ(std::filesystem::last_write_time(folder / ("out/" + name + ".h5")), written);

  ASSERT_EQ(Run("sweep collect study.yaml").code, 0);
  const auto table = Table("out");
  ASSERT_EQ(table.size(), 5U);
  EXPECT_THAT(table[0], ElementsAre("name", "seed", "hash", "sync.every", "loss", "best_loss",
                                    "loss.synthetic", "best_loss.synthetic", "target_s",
                                    "target_bytes", "rounds", "steps", "tokens", "virtual_s",
                                    "up_bytes", "down_bytes", "node_up_bytes", "node_down_bytes",
                                    "node_memory_bytes", "node_memory_max_bytes"));
  const analysis::RunLog log = analysis::ReadRunLog(Path("out/" + name + ".h5"));
  EXPECT_EQ(log.info.seed, 1U);
  EXPECT_EQ(table[1][0], name);
  EXPECT_EQ(table[1][2], log.info.scenario_hash);
  EXPECT_EQ(table[1][3], "2");
  EXPECT_EQ(std::stod(table[1][4]), log.evals.back().ce);
  EXPECT_EQ(std::stod(table[1][8]), log.rounds.back().end_s) << "reached in the last round";
  EXPECT_EQ(table[1][10], "4");
  EXPECT_EQ(table[1][11], "8");
  EXPECT_EQ(table[4][0], "every=4_seed=2");

  // A changed setting makes the runs that have it anew, and no other.
  Write("study.yaml", TinyStudy("out") + "slurm: {time: 1 h}\n");
  EXPECT_THAT(Run("sweep study.yaml").out, HasSubstr("4 of them before"));
  std::string changed = TinyStudy("out");
  changed.replace(changed.find("[2, 4]"), 6, "[4, 1]");
  Write("study.yaml", changed);
  EXPECT_THAT(Run("sweep study.yaml --only every=1_seed=1").out,
              HasSubstr("1 of 1 runs finished, 0 of them before"));
  EXPECT_THAT(Run("sweep study.yaml --only every=4").out,
              HasSubstr("2 of 2 runs finished, 2 of them before"));
  ASSERT_EQ(Run("sweep collect study.yaml --output elsewhere").code, 0);
  EXPECT_EQ(Table("elsewhere").size(), 4U);
  EXPECT_TRUE(Exists("elsewhere/table.h5"));
}

TEST_F(SweepTest, KilledAtAnyMomentItEndsWithTheSameTable) {
  Write("whole.yaml", TinyStudy("whole"));
  Write("broken.yaml", TinyStudy("broken"));
  ASSERT_EQ(Run("sweep whole.yaml --jobs 1 --quiet").code, 0);
  for (const int milliseconds : {300, 700, 1100, 1500, 1900}) {
    const pid_t sweep = Start("sweep broken.yaml --jobs 2");
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    kill(sweep, SIGKILL);
    Wait(sweep);
  }
  const Outcome last = Run("sweep broken.yaml");
  ASSERT_EQ(last.code, 0) << last.err;
  ASSERT_EQ(Run("sweep collect whole.yaml").code, 0);
  ASSERT_EQ(Run("sweep collect broken.yaml").code, 0);
  EXPECT_EQ(Table("broken"), Table("whole"));
  EXPECT_EQ(Table("broken").size(), 5U);
  EXPECT_TRUE(std::filesystem::is_empty(folder / "broken/unfinished"));
}

TEST_F(SweepTest, CtrlCEndsTheRunsAndTheNextCallGoesOn) {
  Write("study.yaml", TinyStudy("out") + "mode: grid\n");
  std::string longer = TinyStudy("out");
  longer.replace(longer.find("steps: 8"), 8, "steps: 100000");
  Write("long.yaml", longer);
  const pid_t sweep = Start("sweep long.yaml --jobs 2");
  // Until one has a log; a bounded number of looks.
  for (int i = 0; i < 3000 && !Exists("out/unfinished/every=2_seed=1.h5"); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_THAT(Run("sweep status long.yaml").out, HasSubstr("running        2\n"));
  kill(sweep, SIGINT);
  EXPECT_EQ(Wait(sweep), 128 + SIGINT);
  EXPECT_THAT(Run("sweep status long.yaml").out, HasSubstr("waiting        4\n"));
  EXPECT_EQ(analysis::ReadRunLogHead(Path("out/unfinished/every=2_seed=1.h5")).status,
            "interrupted");
  EXPECT_EQ(Run("sweep study.yaml --quiet").code, 0);
}

TEST_F(SweepTest, FailedRunsAreListedAndTriedAgain) {
  Write("world.safetensors", "not a world");
  Write("study.yaml",
        "base: tiny.yaml\n"
        "mode: list\n"
        "runs:\n"
        "  - {name: plain}\n"
        "  - {name: from a world, training.start_from: world.safetensors}\n"
        "output: out\n");
  const Outcome first = Run("sweep study.yaml");
  EXPECT_EQ(first.code, 3);
  EXPECT_THAT(first.out, HasSubstr("1 of 2 runs finished"));
  EXPECT_THAT(first.out, HasSubstr("\n  fromaworld  "));
  EXPECT_THAT(first.err, HasSubstr("spes-sim: 1 of 2 runs failed"));
  const Outcome status = Run("sweep status study.yaml");
  EXPECT_THAT(status.out, HasSubstr("failed         1\n"));
  EXPECT_THAT(status.out, HasSubstr("world.safetensors"));
  EXPECT_THAT(status.out, ::testing::Not(HasSubstr("spes-sim:")));
  const Outcome again = Run("sweep study.yaml");
  EXPECT_EQ(again.code, 3);
  EXPECT_THAT(again.out, HasSubstr("1 of 2 runs finished, 1 of them before"));
  std::filesystem::copy_file(folder / "out/plain.safetensors", folder / "world.safetensors",
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_THAT(Run("sweep status study.yaml").out, HasSubstr("waiting        1\n"));
  EXPECT_EQ(Run("sweep study.yaml").code, 0);
  ASSERT_EQ(Run("sweep collect study.yaml").code, 0);
  const auto table = Table("out");
  ASSERT_EQ(table.size(), 3U);
  EXPECT_EQ(table[0][3], "training.start_from");
  EXPECT_EQ(table[1][3], "");
  EXPECT_EQ(table[2][0], "fromaworld");
}

TEST_F(SweepTest, ARunThatTakesTooLongFails) {
  Write("study.yaml",
        "base: tiny.yaml\nset: {training.steps: 100000}\nseeds: 1\n"
        "budget: {runs: 1, wall_time: 500 ms}\noutput: out\n");
  const Outcome outcome = Run("sweep study.yaml");
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.out, HasSubstr("seed=1  took longer than budget.wall_time allows, 500 ms"));
}

TEST_F(SweepTest, TwoSweepsInOneFolderAreRefused) {
  Write("study.yaml", TinyStudy("out"));
  std::filesystem::create_directories(folder / "out");
  const int lock = open(Path("out/.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  ASSERT_EQ(flock(lock, LOCK_EX), 0);
  const Outcome outcome = Run("sweep study.yaml");
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("another sweep"));
  close(lock);
}

// A stand-in for sbatch that does the tasks at once, one after the other.
TEST_F(SweepTest, AnArrayOfJobsGivesTheSameTable) {
  Write("here.yaml", TinyStudy("here"));
  Write("there.yaml",
        TinyStudy("there") +
            "slurm: {partition: long, time: 90 min, memory: 2 GiB, gpus: 1, cpus: 2, extra: "
            "[--account=me]}\n");
  Write("bin/sbatch", "");  // the folder
  std::filesystem::create_directories(folder / "bin");
  Write("bin/sbatch",
        "#!/bin/sh\n"
        "test \"$1\" = --parsable || exit 9\n"
        "for i in $(sed -n 's/^#SBATCH --array=//p' \"$2\" | sed 's/%.*//; s/0-3/0 1 2 3/; s/,/ "
        "/g'); do\n"
        "  SLURM_CPUS_ON_NODE=1 SLURM_ARRAY_TASK_ID=$i sh \"$2\" >&2 || exit 8\n"
        "done\n"
        "echo 'sbatch: a warning'\n"
        "echo '77;cluster'\n");
  Write("bin/squeue",
        "#!/bin/sh\necho 'slurm_load_jobs error: Invalid job id specified'\nexit 1\n");
  for (const char* name : {"bin/sbatch", "bin/squeue"}) {
    std::filesystem::permissions(folder / name, std::filesystem::perms::owner_all);
  }
  const std::string path = "PATH=" + Path("bin") + ":$PATH";
  ASSERT_EQ(Run("sweep here.yaml --quiet").code, 0);
  const Outcome submitted = Run("sweep there.yaml --slurm --jobs 3", path);
  ASSERT_EQ(submitted.code, 0) << submitted.err;
  EXPECT_THAT(submitted.out, HasSubstr("4 runs submitted as job 77"));
  const std::string script = Read("there/slurm.sh");
  for (const char* line :
       {"--job-name=\"there\"", "--array=0-3%3", "--partition=long", "--time=0-01:30:00",
        "--mem=2097152K", "--gres=gpu:1", "--cpus-per-task=2", "--account=me"}) {
    EXPECT_THAT(script, HasSubstr(std::string("\n#SBATCH ") + line + "\n"));
  }
  const Outcome status = Run("sweep status there.yaml", path);
  EXPECT_THAT(status.out, HasSubstr("finished       4\n"));
  EXPECT_THAT(status.out, HasSubstr("Slurm job 77: 0 pending, 0 running\n"));
  ASSERT_EQ(Run("sweep collect here.yaml").code, 0);
  ASSERT_EQ(Run("sweep collect there.yaml").code, 0);
  EXPECT_EQ(Table("here"), Table("there"));
  EXPECT_THAT(Run("sweep there.yaml --slurm", path).out, HasSubstr("all runs have finished"));

  // A queue that still has tasks of the job.
  std::filesystem::remove(folder / "there/every=2_seed=2.h5");
  Write("bin/squeue", "#!/bin/sh\necho PENDING\necho RUNNING\n");
  const Outcome busy = Run("sweep there.yaml --slurm", path);
  EXPECT_EQ(busy.code, 3);
  EXPECT_THAT(busy.err, HasSubstr("2 tasks of its job 77 are still queued or running"));
  // sbatch says no.
  Write("bin/squeue", "#!/bin/sh\nexit 0\n");
  Write("bin/sbatch", "#!/bin/sh\necho 'sbatch: error: invalid partition' >&2\nexit 1\n");
  const Outcome refused = Run("sweep there.yaml --slurm", path);
  EXPECT_EQ(refused.code, 3);
  EXPECT_THAT(refused.err, HasSubstr("invalid partition"));
}

struct Mistake {
  const char* name;
  const char* study;
  const char* options;
  const char* said;
};

class BadStudy : public SweepTestBase, public ::testing::WithParamInterface<Mistake> {};

TEST_P(BadStudy, IsOneLineAndExitCode2) {
  Write("study.yaml", std::string(GetParam().study) + "output: out\n");
  const Outcome outcome = Run("sweep " + std::string(GetParam().options));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("spes-sim: "));
  EXPECT_THAT(outcome.err, HasSubstr(GetParam().said));
  EXPECT_FALSE(Exists("out"));
}

INSTANTIATE_TEST_SUITE_P(
    Mistakes, BadStudy,
    ::testing::Values(
        Mistake{"UnknownKey", "base: tiny.yaml\nsluwrm: {}\n", "study.yaml",
                "study.yaml:2: unknown key 'sluwrm' in 'study'; did you mean 'slurm'?"},
        Mistake{"EmptyAxis", "base: tiny.yaml\naxes:\n  - {key: sync.every, values: []}\n",
                "study.yaml", "study.yaml:3: axes.0.values: is empty"},
        Mistake{"TwoRunsOfOneName", "base: tiny.yaml\naxes: [{key: seed, values: [1, 1]}]\n",
                "study.yaml", "two runs are called 'seed=1'"},
        Mistake{"RefusedValue", "base: tiny.yaml\naxes: [{key: model.experts, values: [4, 1]}]\n",
                "study.yaml", "(run experts=1)"},
        Mistake{"MissingBase", "base: absent.yaml\nseeds: 2\n", "study.yaml",
                "study.yaml:1: base: there is no file 'absent.yaml'"},
        Mistake{"OverBudget", "base: tiny.yaml\nseeds: 9\nbudget: {runs: 3}\n", "study.yaml",
                "the study has 9 runs, more than 3"},
        Mistake{"NoStudy", "", "", "which study?"},
        Mistake{"AbsentStudy", "", "absent.yaml", "absent.yaml"},
        Mistake{"UnknownRun", "base: tiny.yaml\nseeds: 2\n", "study.yaml --only seed=3",
                "did you mean 'seed=1'?"},
        Mistake{"NoJobs", "base: tiny.yaml\nseeds: 2\n", "study.yaml --jobs 0", "--jobs"},
        Mistake{"NoSuchIndex", "base: tiny.yaml\nseeds: 2\n", "run-one study.yaml --index 2",
                "there is no run 2; the last is 1"}),
    [](const auto& mistake) { return std::string(mistake.param.name); });

TEST_F(SweepTest, NothingToCollectIsSaid) {
  Write("study.yaml", TinyStudy("out"));
  const Outcome outcome = Run("sweep collect study.yaml");
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("none of its 4 runs has finished yet"));
  EXPECT_FALSE(Exists("out"));
}

}  // namespace
}  // namespace spes::end_to_end
