// Studies: what a file says, the runs that it makes, and what is refused.
#include "scenarios/study.h"

#include <gmock/gmock.h>

#include <cmath>

#include "scenarios/scenario_hash.h"

#include "tests/scenarios/scenario_testing.h"

namespace spes::scenarios {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class StudyTest : public ::testing::Test {
 protected:
  StudyTest() { folder_.Write("small.yaml", kSmall); }

  Study Read(const std::string& text, const std::string& base = "base: small.yaml\n") const {
    return ReadStudy(folder_.Write("study.yaml", base + text));
  }

  std::vector<std::string> Names(const std::string& text) const {
    std::vector<std::string> names;
    for (const StudyRun& run : StudyRuns(Read(text))) names.push_back(run.name);
    return names;
  }

  // What is said of a study that is read, planned and resolved, without the folder's name.
  std::string Error(const std::string& text, const std::string& base = "base: small.yaml\n") const {
    std::string error = ErrorOf([&] {
      const Study study = Read(text, base);
      for (const StudyRun& run : StudyRuns(study)) ScenarioOf(study, run);
    });
    const std::string folder = folder_.Path("");
    for (std::size_t at; (at = error.find(folder)) != std::string::npos;) {
      error.erase(at, folder.size());
    }
    return error;
  }

  TempFolder folder_;
};

TEST_F(StudyTest, AGridIsEveryCombinationOfValuesAndSeeds) {
  const Study study = Read(
      "set: {training.steps: 20, sync.merge.length: 20}\n"
      "axes:\n"
      "  - {key: sync.every, values: [5, 10]}\n"
      "  - name: method\n"
      "    values:\n"
      "      - {label: SPES, sync.merge.interval: 0}\n"
      "      - {label: warm up, sync.merge.interval: 20, sync.merge.alpha: 0.2}\n"
      "seeds: [1, 7]\n");
  const std::vector<StudyRun> runs = StudyRuns(study);
  ASSERT_EQ(runs.size(), 8u);
  EXPECT_EQ(runs[0].name, "every=5_method=SPES_seed=1");
  EXPECT_EQ(runs[0].point, "every=5_method=SPES");
  EXPECT_EQ(runs[3].name, "every=5_method=warmup_seed=7");
  EXPECT_EQ(runs[7].name, "every=10_method=warmup_seed=7");
  EXPECT_THAT(runs[3].labels, ElementsAre("5", "warm up"));
  EXPECT_THAT(VariedKeys(study),
              ElementsAre("sync.every", "sync.merge.interval", "sync.merge.alpha"));
  const Scenario first = ScenarioOf(study, runs[0]), last = ScenarioOf(study, runs[7]);
  EXPECT_EQ(first.name, runs[0].name);
  EXPECT_EQ(first.training.steps, 20);
  EXPECT_EQ(first.sync.schedule.every, 5);
  EXPECT_EQ(first.sync.merge.interval, 0);
  EXPECT_EQ(first.seed, 1u);
  EXPECT_EQ(last.sync.schedule.every, 10);
  EXPECT_EQ(last.sync.merge.interval, 20);
  EXPECT_EQ(last.sync.merge.alpha, 0.2);
  EXPECT_EQ(last.seed, 7u);
}

// The study's run is the one that the same settings on the command line make.
TEST_F(StudyTest, SettingsAreThoseOfTheCommandLine) {
  const Study study = Read(
      "set: {nodes.compute: {kind: fixed, step_time: 30 ms}}\n"
      "axes: [{key: data.domains.0.synthetic_tokens, values: [2e3]}]\n"
      "seeds: 1\n");
  const Scenario run = ScenarioOf(study, StudyRuns(study)[0]);
  const Scenario set =
      ReadScenario(folder_.Path("small.yaml"), {"nodes.compute={kind: fixed, step_time: 30 ms}",
                                                "data.domains.0.synthetic_tokens=2000", "seed=1"});
  EXPECT_EQ(ScenarioHash(run), ScenarioHash(set));
}

TEST_F(StudyTest, ZippedAxesGoValueByValue) {
  EXPECT_THAT(Names("mode: zipped\n"
                    "axes:\n"
                    "  - {key: sync.every, values: [5, 10]}\n"
                    "  - {key: sync.merge.interval, values: [10, 20]}\n"),
              ElementsAre("every=5_interval=10", "every=10_interval=20"));
}

TEST_F(StudyTest, AListHasTheRunsAsWritten) {
  EXPECT_THAT(Names("mode: list\n"
                    "set: {sync.every: 5}\n"
                    "runs:\n"
                    "  - {name: plain}\n"
                    "  - {sync.every: 10, sync.merge.interval: 20}\n"
                    "seeds: 2\n"),
              ElementsAre("plain_seed=1", "plain_seed=2", "every=10_interval=20_seed=1",
                          "every=10_interval=20_seed=2"));
}

TEST_F(StudyTest, SeedsAloneMakeAStudy) {
  EXPECT_THAT(Names("seeds: 3\n"), ElementsAre("seed=1", "seed=2", "seed=3"));
}

TEST_F(StudyTest, NamesAreFitForFiles) {
  EXPECT_THAT(Names("axes:\n"
                    "  - {key: nodes.groups.0.link.up, values: [5 Mbps, 1.5 Gbps]}\n"
                    "  - {key: network.coordinator_link.up, values: [1 Gbps]}\n"
                    "  - {key: model, values: [models/spes_1b.yaml]}\n"
                    "  - {key: data.domains, values: [[a/b, c]]}\n"),
              ElementsAre("nodes.groups.0.link.up=5Mbps_network.coordinator_link.up=1Gbps_"
                          "model=spes_1b_domains=a-b+c",
                          "nodes.groups.0.link.up=1.5Gbps_network.coordinator_link.up=1Gbps_"
                          "model=spes_1b_domains=a-b+c"));
}

constexpr const char* kRandom =
    "mode: random\n"
    "seed: 3\n"
    "axes:\n"
    "  - {key: training.lr, range: {from: 1e-4, to: 1e-2, log: true}}\n"
    "  - {key: sync.every, range: {from: 2, to: 9, whole: true}}\n"
    "  - {key: nodes.compute.step_time, range: {from: 10 ms, to: 20 ms}}\n"
    "  - {key: sync.moments, values: [kept, reset]}\n";

TEST_F(StudyTest, DrawsCoverTheirRanges) {
  const Study study = Read(std::string(kRandom) + "samples: 800\nset: {sync.merge.interval: 0}\n");
  double below = 0, time = 0;
  std::map<int, int> every;
  std::map<std::string, int> weights;
  for (const StudyRun& run : StudyRuns(study)) {
    ASSERT_EQ(run.settings.size(), 4u);
    const double lr = std::stod(run.settings[0].value.text);
    ASSERT_GE(lr, 1e-4);
    ASSERT_LE(lr, 1e-2);
    below += lr < 1e-3 ? 1 : 0;
    ++every[std::stoi(run.settings[1].value.text)];
    ASSERT_THAT(run.settings[2].value.text, ::testing::EndsWith(" ms"));
    time += std::stod(run.settings[2].value.text);
    ++weights[run.settings[3].value.text];
  }
  // Within about four standard deviations of what is expected.
  EXPECT_NEAR(below / 800, 0.5, 0.07);
  EXPECT_NEAR(time / 800, 15, 0.42);
  ASSERT_EQ(every.size(), 8u);
  for (const auto& [value, count] : every) EXPECT_NEAR(count, 100, 40) << value;
  EXPECT_EQ(every.begin()->first, 2);
  EXPECT_NEAR(weights["kept"], 400, 57);
  EXPECT_NO_THROW(ScenarioOf(study, StudyRuns(study)[5]));
}

TEST_F(StudyTest, MoreSamplesOrAxesChangeNoDraw) {
  const auto runs = StudyRuns(Read(std::string(kRandom) + "samples: 5\n"));
  const auto more = StudyRuns(
      Read(std::string(kRandom) + "  - {key: training.beta2, values: [0.9, 0.95]}\nsamples: 9\n"));
  ASSERT_EQ(more.size(), 9u);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (std::size_t s = 0; s < 4; ++s) {
      EXPECT_EQ(more[i].settings[s].value.text, runs[i].settings[s].value.text);
    }
  }
  const auto other = StudyRuns(Read(std::string(kRandom) + "samples: 5\n", "base: small.yaml\n"));
  EXPECT_EQ(other[3].name, runs[3].name);
}

TEST_F(StudyTest, TheRestOfTheFile) {
  const Study study = Read(
      "name: mine\n"
      "seeds: 2\n"
      "budget: {runs: 2, wall_time: 30 min}\n"
      "target_loss: {toy: 2.5}\n"
      "slurm: {partition: gpu, time: 2 h, memory: 8 GiB, gpus: 1, cpus: 4, extra: [--account=me]}\n"
      "output: somewhere\n");
  EXPECT_EQ(study.name, "mine");
  EXPECT_EQ(study.base, folder_.Path("small.yaml"));
  EXPECT_EQ(study.budget.wall_time, std::chrono::minutes(30));
  EXPECT_EQ(study.target_loss.at("toy"), 2.5);
  EXPECT_EQ(study.slurm.partition, "gpu");
  EXPECT_EQ(study.slurm.time, std::chrono::hours(2));
  EXPECT_EQ(study.slurm.memory_bytes, std::int64_t{8} << 30);
  EXPECT_EQ(study.slurm.gpus, 1);
  EXPECT_EQ(study.slurm.cpus, 4);
  EXPECT_THAT(study.slurm.extra, ElementsAre("--account=me"));
  EXPECT_EQ(study.output, "somewhere");
  const Study other = Read("seeds: 2\ntarget_loss: 2\n");
  EXPECT_EQ(other.name, "study");
  EXPECT_EQ(other.output, "results/runs/study");
  EXPECT_EQ(other.target_loss.at(""), 2);
}

struct Refusal {
  const char* name;
  const char* text;
  const char* error;
};

class StudyRefusal : public StudyTest, public ::testing::WithParamInterface<Refusal> {};

TEST_P(StudyRefusal, IsOneLineWithItsPlace) {
  const std::string error = Error(GetParam().text);
  EXPECT_THAT(error, ::testing::StartsWith(GetParam().error));
  EXPECT_EQ(error.find('\n'), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(
    Refusals, StudyRefusal,
    ::testing::Values(
        Refusal{"UnknownKey", "axs: []\n",
                "study.yaml:2: unknown key 'axs' in 'study'; did you mean 'axes'?"},
        Refusal{"UnknownKeyOfAnAxis", "axes:\n  - {key: sync.every, value: [1]}\n",
                "study.yaml:3: unknown key 'value' in 'axes.0'; did you mean 'values'?"},
        Refusal{"UnknownKeyOfASection", "slurm: {cpu: 3}\n",
                "study.yaml:2: unknown key 'cpu' in 'slurm'; did you mean 'cpus'?"},
        Refusal{"UnknownKeyOfTheScenario", "axes:\n  - key: sync.evry\n    values: [1]\n",
                "study.yaml:4: unknown key 'evry' in 'sync'; did you mean 'every'? (run evry=1)"},
        Refusal{"UnknownKeyOfTheScenarioInSet", "seeds: 1\nset: {sync.evry: 3}\n",
                "study.yaml:3: unknown key 'evry' in 'sync'; did you mean 'every'? (run seed=1)"},
        Refusal{"RefusedValue", "axes:\n  - key: sync.every\n    values:\n      - 5\n      - 0\n",
                "study.yaml:6: sync.every: '0' is not a whole number of at least 1 (run every=0)"},
        Refusal{"RefusedTogether",
                "set: {sync.merge.length: 60}\n"
                "axes:\n  - {key: sync.merge.interval, values: [10, 12]}\n",
                "study.yaml:4: sync.merge.interval"},
        Refusal{"EmptyAxis", "axes:\n  - {key: sync.every, values: []}\n",
                "study.yaml:3: axes.0.values: is empty; it needs at least one item"},
        Refusal{"AxisWithoutValues", "axes:\n  - {key: sync.every}\n",
                "study.yaml:3: axes.0.values: is empty"},
        Refusal{"ValuesOfOne", "axes:\n  - {key: sync.every, values: 5}\n",
                "study.yaml:3: axes.0.values: must be a list"},
        Refusal{"TwoRunsOfOneName", "axes:\n  - {key: sync.every, values: [5, 5]}\n",
                "study.yaml:3: two runs are called 'every=5'"},
        Refusal{"TwoRunsOfOneNameInAList", "mode: list\nruns:\n  - {name: a}\n  - {name: a}\n",
                "study.yaml: two runs are called 'a'"},
        Refusal{"OneSeedTwice", "seeds: [3, 3]\n", "study.yaml: two runs are called 'seed=3'"},
        Refusal{"TwoAxesOfOneKey",
                "axes:\n  - {key: sync.every, values: [5]}\n"
                "  - {name: m, values: [{label: x, sync.every: 10}]}\n",
                "study.yaml:4: sync.every: the axis 'sync.every' sets it as well"},
        Refusal{"AnAxisAboveAnother",
                "axes:\n  - {key: model.experts, values: [4]}\n"
                "  - {key: model, values: [models/spes_1b.yaml]}\n",
                "study.yaml:4: model: the axis 'model.experts' sets model.experts as well"},
        Refusal{"AnAxisAboveSet", "set: {model.experts: 4}\naxes:\n  - {key: model, values: [a]}\n",
                "study.yaml:4: model: would undo model.experts of `set`"},
        Refusal{"SeedAndSeeds", "axes:\n  - {key: seed, values: [1, 2]}\nseeds: 2\n",
                "study.yaml:3: seed: the study's `seeds` set this as well"},
        Refusal{"NoLabel", "axes:\n  - name: m\n    values:\n      - {sync.every: 5}\n",
                "study.yaml:5: axes.0.values: a value that sets several keys needs a label"},
        Refusal{"NoKey", "axes:\n  - {values: [1]}\n", "study.yaml:3: axes.0: an axis needs a key"},
        Refusal{"OwnOutput", "axes:\n  - {key: output.log, values: [a.h5]}\n",
                "study.yaml:3: output.log: the study gives each run its own"},
        Refusal{"OwnName", "seeds: 1\nset: {name: x}\n",
                "study.yaml:3: name: the study gives each run its own"},
        Refusal{"UnequalAxes",
                "mode: zipped\naxes:\n  - {key: sync.every, values: [5]}\n"
                "  - {key: training.lr, values: [1, 2]}\n",
                "study.yaml:5: axes of mode zipped have equally many values; 'sync.every' has 1 "
                "and 'training.lr' 2"},
        Refusal{"UnknownMode", "mode: gird\n",
                "study.yaml:2: mode: 'gird' is not grid, zipped, random or list; did you mean "
                "'grid'?"},
        Refusal{"NothingVaries", "set: {sync.every: 5}\n", "study.yaml: nothing varies"},
        Refusal{"RunsOfAGrid", "runs: [{name: a}]\n", "study.yaml:2: runs: are for mode: list"},
        Refusal{"NoRuns", "mode: list\nruns: []\n", "study.yaml:3: runs: is empty"},
        Refusal{"AxesOfAList", "mode: list\naxes: [{key: sync.every, values: [1]}]\n",
                "study.yaml:3: axes: have no place in mode: list"},
        Refusal{"ARunWithoutAnything", "mode: list\nruns: [{}]\n",
                "study.yaml: a run without settings needs a name"},
        Refusal{"SamplesOfAGrid", "samples: 3\nseeds: 1\n",
                "study.yaml:2: samples: is for mode: random"},
        Refusal{"SeedOfAGrid", "seed: 3\nseeds: 1\n",
                "study.yaml:2: seed: is for mode: random; the runs' own are `seeds`"},
        Refusal{"NoSamples", "mode: random\naxes: [{key: sync.every, values: [1]}]\n",
                "study.yaml: samples: must be at least 1"},
        Refusal{"RangeOfAGrid", "axes:\n  - {key: sync.every, range: {from: 1, to: 2}}\n",
                "study.yaml:3: axes.0: a range is for mode: random"},
        Refusal{
            "RangeUpsideDown",
            "mode: random\nsamples: 1\naxes:\n  - {key: training.lr, range: {from: 2, to: 1}}\n",
            "study.yaml:5: range: `from` must be below `to`"},
        Refusal{"RangeOfTwoUnits",
                "mode: random\nsamples: 1\naxes:\n"
                "  - {key: nodes.compute.step_time, range: {from: 2 ms, to: 1 s}}\n",
                "study.yaml:5: range: from '2 ms' to '1 s': write both in one unit"},
        Refusal{
            "RangeOfWords",
            "mode: random\nsamples: 1\naxes:\n  - {key: training.lr, range: {from: a, to: b}}\n",
            "study.yaml:5: range: 'a' is not a number"},
        Refusal{"Budget", "budget: {runs: 2}\nseeds: 3\n",
                "study.yaml:2: budget.runs: the study has 3 runs, more than 2"},
        Refusal{"TooMany", "axes:\n  - {key: seed, range: {}, values: [1]}\nseeds: 200000\n",
                "study.yaml:4: seeds: their number must be from 1 to 100000"},
        Refusal{"SeedsOfWords", "seeds: many\n", "study.yaml:2: seeds: must be a list of whole"},
        Refusal{"TargetOfNoDomain", "seeds: 1\ntarget_loss: {tow: 2}\n",
                "study.yaml:3: target_loss: the data has no domain 'tow'; did you mean 'toy'? (run "
                "seed=1)"},
        Refusal{"TargetOfWords", "seeds: 1\ntarget_loss: low\n", "study.yaml:3: target_loss: must"},
        Refusal{"MeasuredTime", "seeds: 1\nset: {nodes.compute.kind: measured}\n",
                "study.yaml: nodes.compute.kind: measured times a step on this machine"},
        Refusal{"ReservedName", "mode: list\nruns: [{name: table, sync.every: 5}]\n",
                "study.yaml:3: no run can be called 'table'"}),
    [](const auto& refusal) { return std::string(refusal.param.name); });

TEST_F(StudyTest, TheBaseMustBeThere) {
  EXPECT_EQ(Error("seeds: 1\n", ""),
            "study.yaml: base: is missing; a study names the scenario that it varies");
  EXPECT_THAT(Error("seeds: 1\n", "base: absent.yaml\n"),
              HasSubstr("study.yaml:1: base: there is no file 'absent.yaml'"));
  EXPECT_THAT(ErrorOf([&] { ReadStudy(folder_.Path("absent.yaml")); }), HasSubstr("absent.yaml"));
}

}  // namespace
}  // namespace spes::scenarios
