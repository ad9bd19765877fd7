// A user's mistakes: one line that says what, where and what would be right, exit code 2, nothing
// written.
#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "analysis/hdf5/log_reader.h"
#include "tests/end_to_end/program.h"

namespace spes::end_to_end {
namespace {

using ::testing::HasSubstr;

struct Mistake {
  const char* name;
  const char* arguments;
  const char* said;  // part of the line
};

class BadInputKeeps : public ProgramTest {};

class BadInput : public ProgramTest, public ::testing::WithParamInterface<Mistake> {};

TEST_P(BadInput, IsOneLineAndExitCode2) {
  Write("tiny.yaml", TinyScenario());
  Write("empty.txt", "");
  Write("short.txt", "too short");
  Write("typo.yaml", std::string(TinyScenario()) + "outptu: {log: x.h5}\n");
  const Outcome outcome = Run(GetParam().arguments);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("spes-sim: "));
  EXPECT_THAT(outcome.err, HasSubstr(GetParam().said));
  EXPECT_FALSE(std::filesystem::exists(folder / "run.h5"));
  EXPECT_FALSE(std::filesystem::exists(folder / "run.safetensors"));
}

INSTANTIATE_TEST_SUITE_P(
    Mistakes, BadInput,
    ::testing::Values(
        Mistake{"NoScenario", "", "which scenario?"},
        Mistake{"MissingFile", "absent.yaml", "absent.yaml"},
        Mistake{"UnknownOption", "tiny.yaml --outptu run.h5", "--outptu"},
        Mistake{"UnknownKey", "typo.yaml --output run.h5", "typo.yaml:15: unknown key 'outptu'"},
        Mistake{"UnknownKeyNearest", "typo.yaml --output run.h5", "did you mean 'output'"},
        Mistake{"UnknownSetKey", "tiny.yaml --output run.h5 --set sync.evry=3",
                "did you mean 'every'"},
        Mistake{"EmptyCorpus",
                "tiny.yaml --output run.h5 --set data.domains.0.synthetic=false --set "
                "data.domains.0.synthetic_tokens=0 --set data.domains.0.files=[empty.txt]",
                "empty.txt"},
        Mistake{"ShortCorpus",
                "tiny.yaml --output run.h5 --set data.domains.0.synthetic=false --set "
                "data.domains.0.synthetic_tokens=0 --set data.domains.0.files=[short.txt]",
                "synthetic"},
        Mistake{"MissingCorpus",
                "tiny.yaml --output run.h5 --set data.domains.0.synthetic=false --set "
                "data.domains.0.synthetic_tokens=0 --set data.domains.0.files=[absent.txt]",
                "absent.txt"},
        Mistake{"QuorumBeyondNodes", "tiny.yaml --output run.h5 --set sync.quorum=5",
                "sync.quorum"},
        Mistake{"MergeInterval", "tiny.yaml --output run.h5 --set sync.merge.interval=6",
                "sync.merge.interval"},
        Mistake{"NegativeRate", "tiny.yaml --output run.h5 --set 'nodes.groups.0.link.up=-5 Mbps'",
                "nodes.groups.0.link.up"},
        Mistake{"ZeroRate", "tiny.yaml --output run.h5 --set 'nodes.groups.0.link.up=0 Mbps'",
                "nodes.groups.0.link.up"},
        Mistake{"NoUnit", "tiny.yaml --output run.h5 --set nodes.groups.0.link.up=5", "unit"},
        Mistake{"ZeroNodes", "tiny.yaml --output run.h5 --set nodes.groups.0.count=0",
                "nodes.groups.0.count"},
        Mistake{"ZeroSteps", "tiny.yaml --output run.h5 --set training.steps=0", "training.steps"},
        Mistake{"WrongType", "tiny.yaml --output run.h5 --set model.layers=many", "model.layers"},
        Mistake{"NoFolder", "tiny.yaml --output /dev/null/folder/run.h5", "/dev/null/folder"},
        Mistake{"MissingFolder", "tiny.yaml --output absent/run.h5", "absent"},
        Mistake{"OutputIsAFolder", "tiny.yaml --output .", "folder"},
        Mistake{"WorldCannotBeWritten",
                "tiny.yaml --output run.h5 --set output.world=absent/run.safetensors",
                "absent/run.safetensors"},
        Mistake{"LogAndWorldAreOne", "tiny.yaml --output b.safetensors", "one file"},
        Mistake{"TooFewSamplesToShare",
                "tiny.yaml --output run.h5 --set data.sharing=disjoint --set "
                "data.domains.0.synthetic_tokens=80 --set data.held_out=0.3",
                "disjoint"},
        Mistake{"StartFromNothing",
                "tiny.yaml --output run.h5 --set training.start_from=absent.safetensors",
                "absent.safetensors"},
        Mistake{"StartFromJunk", "tiny.yaml --output run.h5 --set training.start_from=short.txt",
                "short.txt"},
        Mistake{"FaultOfNoNode",
                "tiny.yaml --output run.h5 --set 'faults.scripted=[{kind: crash, node: 4}]'",
                "--set faults.scripted=[{kind: crash, node: 4}]: faults.scripted.0.node: '4' names "
                "nodes that are not there"},
        Mistake{"ACoordinatorThatIsGone",
                "tiny.yaml --output run.h5 --set 'faults.scripted=[{node: coordinator}]'",
                "the coordinator crashes for good"},
        Mistake{"FaultsOfRealMachines",
                "tiny.yaml --output run.h5 --transport tcp --set "
                "'faults.random=[{mean_between: 1 h, mean_duration: 1 s}]'",
                "faults: are simulated"},
        Mistake{"FaultsInARing",
                "tiny.yaml --output run.h5 --set network.exchange.pattern=ring --set "
                "'faults.random=[{mean_between: 1 h, mean_duration: 1 s}]'",
                "crash cannot be with network.exchange.pattern: ring"},
        Mistake{"FaultsInAPlan",
                "plan tiny.yaml --set 'faults.random=[{mean_between: 1 h, mean_duration: 1 s}]'",
                "faults: a plan times rounds in which nothing goes wrong"},
        Mistake{"Workers", "tiny.yaml --output run.h5 --workers -1", "workers"},
        Mistake{"NoDevice", "tiny.yaml --output run.h5 --devices gpu", "'gpu' is no device"},
        Mistake{"AnAddressWithoutAPort", "tiny.yaml --serve localhost --output run.h5",
                "\"localhost\" is no address: write HOST:PORT"},
        Mistake{"ANodeThatIsNotThere", "tiny.yaml --transport tcp --node 9 --output run.h5",
                "--node 9: the scenario has nodes 0 to 3"},
        Mistake{"ANodeTwice", "tiny.yaml --transport tcp --node 3 --node 3 --output run.h5",
                "--node 3: is named twice"},
        Mistake{"ResumeOfANode", "tiny.yaml --resume --join 127.0.0.1:1", "--resume: with --join"},
        Mistake{"OptionsBeforeWan", "--seed 9 wan tiny.yaml", "--seed: stands before wan"},
        Mistake{"SettingsBeforeWan", "--set seed=9 wan tiny.yaml", "--set: stands before wan"},
        Mistake{"OptionsBeforeSchema", "--resume --serve x:1 schema", ": stands before schema"},
        Mistake{"NoSuchGpu", "tiny.yaml --output run.h5 --devices cpu,cuda:127",
                "devices: cuda:127: "}),
    [](const auto& mistake) { return std::string(mistake.param.name); });

TEST_F(BadInputKeeps, NothingThatTheRightCommandWouldFind) {
  Write("tiny.yaml", TinyScenario());
  const auto files = [this] {
    std::set<std::string> names;
    for (const auto& file : std::filesystem::directory_iterator(folder)) {
      names.insert(file.path().filename().string());
    }
    return names;
  };
  for (const char* arguments :
       {"--output nowhere/x.h5 --set output.journal=j", "--transport tcp --output nowhere/x.h5",
        "--transport tcp --node 9 --output a.h5"}) {
    EXPECT_EQ(Run(std::string("tiny.yaml ") + arguments).code, 2);
    EXPECT_EQ(files(), (std::set<std::string>{"err.txt", "out.txt", "tiny.yaml"})) << arguments;
  }
  // Refused by a node when the coordinator is there already.
  const std::string journal = "tiny.yaml --quiet --output a.h5 --set output.journal=j";
  EXPECT_EQ(Run(journal + " --set data.sharing=disjoint --set data.domains.0.synthetic_tokens=80 "
                          "--set data.held_out=0.3")
                .code,
            2);
  const Outcome right = Run(journal);
  EXPECT_EQ(right.code, 0) << right.err;
}

TEST_F(BadInputKeeps, PathsAsTheyAre) {
  Write("tiny.yaml", TinyScenario());
  EXPECT_EQ(Run("tiny.yaml --quiet --output 'run #1: a.h5'").code, 0);
  EXPECT_TRUE(std::filesystem::exists(folder / "run #1: a.h5"));
}

TEST_F(BadInputKeeps, AnOlderLogWhenARunIsRefused) {
  Write("tiny.yaml", TinyScenario());
  ASSERT_EQ(Run("tiny.yaml --output run.h5 --quiet").code, 0);
  EXPECT_EQ(Run("tiny.yaml --output run.h5 --set data.sharing=disjoint --set "
                "data.domains.0.synthetic_tokens=80 --set data.held_out=0.3")
                .code,
            2);
  EXPECT_EQ(analysis::ReadRunLog(Path("run.h5")).status, "complete");
}

class Failure : public ProgramTest {};

TEST_F(Failure, AFullDiskEndsTheRunWithExitCode3AndNoWholeResult) {
  Write("tiny.yaml", TinyScenario());
  // Files may not grow beyond 64 KiB (a shell counts in blocks of 512 bytes); with the signal
  // ignored, writing fails as on a full disk.
  const Outcome outcome = Run("tiny.yaml --output run.h5 --set training.steps=4000",
                              "ulimit -f 128; trap '' XFSZ; exec");
  EXPECT_EQ(outcome.code, 3);
  const std::size_t line = outcome.err.find("spes-sim: ");
  ASSERT_NE(line, std::string::npos) << outcome.err;
  EXPECT_THAT(outcome.err.substr(line), HasSubstr("run.h5"));
  EXPECT_FALSE(std::filesystem::exists(folder / "run.safetensors"));
  if (std::filesystem::exists(folder / "run.h5")) {
    try {
      EXPECT_NE(analysis::ReadRunLog(Path("run.h5")).status, "complete");
    } catch (const std::runtime_error&) {
      // A log that could not even be begun is not a log.
    }
  }
}

TEST_F(Failure, ALearningRateThatDivergesIsNamed) {
  Write("tiny.yaml", TinyScenario());
  const Outcome outcome =
      Run("tiny.yaml --output run.h5 --set training.lr=1e38 --set training.warmup_steps=0");
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("not finite"));
  EXPECT_EQ(analysis::ReadRunLog(Path("run.h5")).status, "failed");
}

TEST_F(Failure, HelpAndVersionAreNoFailures) {
  const Outcome help = Run("--help");
  EXPECT_EQ(help.code, 0);
  EXPECT_THAT(help.out, HasSubstr("--set"));
  EXPECT_THAT(Run("--version").out, HasSubstr("spes-sim 0."));
  const Outcome schema = Run("schema");
  EXPECT_EQ(schema.code, 0);
  EXPECT_THAT(schema.out, HasSubstr("\"$schema\""));
}

}  // namespace
}  // namespace spes::end_to_end
