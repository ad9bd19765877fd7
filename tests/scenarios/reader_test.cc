#include "scenarios/reader.h"

#include "tests/scenarios/scenario_testing.h"

namespace spes::scenarios {
namespace {

using std::chrono::milliseconds;

TEST(Reader, SetsWhatTheTextNamesAndLeavesDefaults) {
  const Scenario s = Parse(
      "seed: 7\n"
      "model: {vocabulary: 300, experts: 4, qk_norm: head, dtype: float64, renormalise_top_k: "
      "true}\n"
      "data:\n"
      "  domains: [{name: toy, synthetic: true, synthetic_tokens: 1e6}]\n"
      "  sharing: dirichlet\n"
      "training: {steps: 30, lr: 1e-3, weight_decay: 0}\n"
      "nodes:\n"
      "  groups:\n"
      "    - {count: 1, speed: 2, link: {down: 1.5 Gbps, up: 20 Mbps, rtt: 40 ms, loss: 0.01}}\n"
      "    - {}\n"
      "sync: {every: 10, allocation: round_robin, reduction: {shared: {kind: token_mean}}, quorum: "
      "1, deadline: 2.5 min}\n"
      "network: {fidelity: ideal, tcp: {congestion: reno, stall_timeout: 90 s}}\n"
      "output: {log: x.h5, links_every: 10 s}\n");
  EXPECT_EQ(s.name, "s");
  EXPECT_EQ(s.seed, 7u);
  EXPECT_EQ(s.model.vocabulary, 300);
  EXPECT_EQ(s.model.qk_norm, trainer::QkNorm::kHead);
  EXPECT_EQ(s.model.dtype, trainer::DType::kFloat64);
  EXPECT_TRUE(s.model.renormalise_top_k);
  EXPECT_EQ(s.model.layers, trainer::ModelConfig{}.layers);
  ASSERT_EQ(s.data.domains.size(), 1u);
  EXPECT_EQ(s.data.domains[0].synthetic_tokens, 1'000'000);
  EXPECT_EQ(s.data.sharing, trainer::Sharing::kDirichlet);
  EXPECT_EQ(s.training.steps, 30);
  EXPECT_EQ(s.training.optimizer.lr, 1e-3);
  EXPECT_EQ(s.training.optimizer.weight_decay, 0);
  EXPECT_EQ(s.training.optimizer.beta2, 0.95);
  ASSERT_EQ(s.nodes.groups.size(), 2u);
  EXPECT_EQ(s.nodes.groups[0].speed, 2);
  EXPECT_EQ(s.nodes.groups[0].link.down_bps, 1.5e9);
  EXPECT_EQ(s.nodes.groups[0].link.up_bps, 20e6);
  EXPECT_EQ(s.nodes.groups[0].link.rtt, milliseconds(40));
  EXPECT_EQ(s.nodes.groups[0].link.loss, 0.01);
  EXPECT_EQ(s.nodes.groups[1].link.down_bps, 1e9);
  EXPECT_EQ(s.sync.schedule.every, 10);
  EXPECT_EQ(s.sync.allocation, trainer::AllocationKind::kRoundRobin);
  EXPECT_EQ(s.sync.shared.rule.kind, trainer::ReductionKind::kTokenMean);
  EXPECT_EQ(s.sync.quorum, 1);
  EXPECT_EQ(s.sync.deadline, milliseconds(150'000));
  EXPECT_EQ(s.network.fidelity, Fidelity::kIdeal);
  EXPECT_EQ(s.network.tcp.congestion, "reno");
  EXPECT_EQ(s.network.tcp.stall_timeout, milliseconds(90'000));
  EXPECT_EQ(s.network.coordinator_link.down_bps, 10e9);
  EXPECT_EQ(s.output.log, "x.h5");
  EXPECT_EQ(s.output.links_every, milliseconds(10'000));
}

TEST(Reader, NamesTheNearestKey) {
  EXPECT_EQ(ParseError(kSmall + "sinc: {}\n"),
            "s.yaml:5: unknown key 'sinc' in 'scenario'; did you mean 'sync'?");
  EXPECT_EQ(ParseError(kSmall + "network:\n  tcp:\n    steams: 4\n"),
            "s.yaml:7: unknown key 'steams' in 'network.tcp'; did you mean 'streams'?");
  EXPECT_EQ(ParseError(kSmall + "output: {directory: x}\n"),
            "s.yaml:5: unknown key 'directory' in 'output'; there is log, world, world_every, "
            "eval_every, links_every, journal, journal_last and journal_every");
  EXPECT_EQ(ParseError("nodes:\n  groups:\n    - count: 1\n    - conut: 2\n"),
            "s.yaml:4: unknown key 'conut' in 'nodes.groups.1'; did you mean 'count'?");
}

TEST(Reader, RefusesWrongTypes) {
  EXPECT_EQ(ParseError(kSmall + "seed: one\n"),
            "s.yaml:5: seed: 'one' is not a whole number of at least 0");
  EXPECT_EQ(ParseError(kSmall + "seed: -1\n"),
            "s.yaml:5: seed: '-1' is not a whole number of at least 0");
  EXPECT_EQ(ParseError(kSmall + "training: {steps: 1.5}\n"),
            "s.yaml:5: training.steps: '1.5' is not a whole number of at least 1");
  EXPECT_EQ(ParseError(kSmall + "training: {lr: fast}\n"),
            "s.yaml:5: training.lr: 'fast' is not a number above 0");
  EXPECT_EQ(ParseError(kSmall + "training: {lr: .inf}\n"),
            "s.yaml:5: training.lr: '.inf' is not a number above 0");
  EXPECT_EQ(ParseError(kSmall + "training: {lr: [1]}\n"),
            "s.yaml:5: training.lr: must be a number above 0, not a list");
  EXPECT_EQ(ParseError(kSmall + "training:\n  lr:\n"),
            "s.yaml:6: training.lr: has no value; it must be a number above 0");
  EXPECT_EQ(ParseError(kSmall + "training:\n  lr:\n\n  steps: 3\n"),
            "s.yaml:6: training.lr: has no value; it must be a number above 0");
  EXPECT_EQ(ParseError(kSmall + "training: 5\n"),
            "s.yaml:5: training: must be the name of a .yaml file, or a mapping of its keys");
  EXPECT_EQ(ParseError(kSmall + "training: [5]\n"),
            "s.yaml:5: training: must be a mapping, not a list");
  EXPECT_EQ(ParseError("data: {domains: {name: x}}\n"),
            "s.yaml:1: data.domains: must be a list, not a mapping");
  EXPECT_EQ(ParseError("data: {domains: [{name: x, files: [[a]]}]}\n"),
            "s.yaml:1: data.domains.0.files.0: must be a text, not a list");
  EXPECT_EQ(ParseError("model: {renormalise_top_k: 1}\n"),
            "s.yaml:1: model.renormalise_top_k: '1' is not true or false");
  EXPECT_EQ(ParseError("model: {qk_norm: ful}\n"),
            "s.yaml:1: model.qk_norm: 'ful' is not none, full or head; did you mean 'full'?");
  EXPECT_EQ(ParseError("network: {tcp: {congestion: bbr}}\n"),
            "s.yaml:1: network.tcp.congestion: 'bbr' is not cubic or reno");
  EXPECT_EQ(ParseError("[1, 2]\n"), "s.yaml:1: scenario: must be a mapping, not a list");
  EXPECT_EQ(ParseError("hello\n"), "s.yaml:1: a scenario is a mapping of keys to values");
}

TEST(Reader, RefusesImpossibleValues) {
  EXPECT_EQ(ParseError("sync:\n  every: 0\n"),
            "s.yaml:2: sync.every: '0' is not a whole number of at least 1");
  EXPECT_EQ(ParseError("sync: {every: 3000000000}\n"),
            "s.yaml:1: sync.every: '3000000000' is not a whole number of at least 1");
  EXPECT_EQ(ParseError("nodes: {groups: [{link: {down: 0 Mbps}}]}\n"),
            "s.yaml:1: nodes.groups.0.link.down: '0 Mbps' is not a rate above 0 bps and at most "
            "1000000 Gbps, such as '100 Mbps'");
  EXPECT_EQ(ParseError("nodes: {groups: [{link: {down: -5 Mbps}}]}\n"),
            "s.yaml:1: nodes.groups.0.link.down: '-5 Mbps' is not a rate above 0 bps and at most "
            "1000000 Gbps, such as '100 Mbps'");
  EXPECT_EQ(ParseError("nodes: {groups: [{link: {loss: 1}}]}\n"),
            "s.yaml:1: nodes.groups.0.link.loss: '1' is not a number of at least 0 and below 1");
  EXPECT_EQ(ParseError("nodes: {groups: [{speed: 0}]}\n"),
            "s.yaml:1: nodes.groups.0.speed: '0' is not a number above 0");
  EXPECT_EQ(ParseError("data: {held_out: 1}\n"),
            "s.yaml:1: data.held_out: '1' is not a number above 0 and below 1");
  EXPECT_EQ(Parse(kSmall).output.links_every, std::nullopt);
  EXPECT_EQ(
      ParseError("output: {links_every: 100 us}\n"),
      "s.yaml:1: output.links_every: '100 us' is not 'none' or a duration of at least 1 ms and "
      "at most 100 d, such as '40 ms'");
  EXPECT_EQ(ParseError("sync: {deadline: 0 s}\n"),
            "s.yaml:1: sync.deadline: '0 s' is not 'none' or a duration above 0 s and at most 100 "
            "d, such as '40 ms'");
}

TEST(Reader, UnitsAreNeeded) {
  EXPECT_EQ(
      ParseError("network:\n  coordinator_link:\n    up: 100\n"),
      "s.yaml:3: network.coordinator_link.up: '100' has no unit; write for example '100 Mbps'");
  EXPECT_EQ(ParseError("nodes: {compute: {step_time: 0.5}}\n"),
            "s.yaml:1: nodes.compute.step_time: '0.5' has no unit; write for example '0.5 ms'");
  EXPECT_EQ(
      ParseError("data: {domains: [{corpus: x, limit_bytes: 4096}]}\n"),
      "s.yaml:1: data.domains.0.limit_bytes: '4096' has no unit; write for example '4096 MiB'");
  EXPECT_EQ(ParseError("nodes: {compute: {step_time: 3 weeks}}\n"),
            "s.yaml:1: nodes.compute.step_time: '3 weeks' is not a duration of at least 0 s and at "
            "most 100 d, such as '40 ms'");
  EXPECT_EQ(Parse(kSmall + "network: {coordinator_link: {rtt: 0}}\n").network.coordinator_link.rtt,
            sim::Time{0});
}

TEST(Reader, RefusesDuplicatesAndJunk) {
  EXPECT_EQ(ParseError("sync:\n  every: 5\n  every: 6\n"),
            "s.yaml:3: the key 'every' is here twice; the first is in line 2");
  EXPECT_EQ(ParseError(""), "s.yaml: the file is empty");
  EXPECT_EQ(ParseError("{{{"), "s.yaml:1: this is not YAML: end of map flow not found");
}

TEST(Reader, FileMissing) {
  const TempFolder folder;
  const std::string file = folder.Path("none.yaml");
  EXPECT_EQ(ErrorOf([&] { ReadScenario(file); }),
            file + ": cannot be read: No such file or directory");
}

TEST(Reader, InstalledScenariosAreFoundByName) {
  const TempFolder folder;
  const Environment installed("SPES_SCENARIOS", folder.Path(""));
  folder.Write("mine.yaml", kSmall);
  EXPECT_EQ(ReadScenario("mine.yaml").name, "mine");
}

TEST(Reader, EmptySectionsAreDefaults) {
  EXPECT_EQ(Parse(kSmall + "training:\n#  steps: 3\n").training.steps, TrainingSection{}.steps);
}

TEST(Overrides, ApplyOnTopInOrder) {
  const Scenario s =
      Parse(kSmall, {"sync.every=50", "sync.every=20", "training.steps=9",
                     "nodes.compute.step_time=2 s", "sync={quorum: 1}", "model.qk_norm=none",
                     "data.domains.0.name=other", "sync.deadline=3 min", "name=mine"});
  EXPECT_EQ(s.sync.schedule.every, 20);
  EXPECT_EQ(s.sync.quorum, 1);
  EXPECT_EQ(s.training.steps, 9);
  EXPECT_EQ(s.nodes.compute.step_time, milliseconds(2000));
  EXPECT_EQ(s.model.qk_norm, trainer::QkNorm::kNone);
  EXPECT_EQ(s.data.domains[0].name, "other");
  EXPECT_TRUE(s.data.domains[0].synthetic);
  EXPECT_EQ(s.sync.deadline, milliseconds(180'000));
  EXPECT_EQ(s.name, "mine");
  EXPECT_EQ(Parse(kSmall, {"sync.deadline=1 s", "sync.deadline=none"}).sync.deadline, std::nullopt);
  const std::string path = "network.paths=[{a: lan, b: wan, rate_back: 5 Mbps}]";
  EXPECT_EQ(Parse(kSmall, {path}).network.paths[0].bps_back, 5e6);
  EXPECT_EQ(Parse(kSmall, {path, "network.paths.0.rate_back=none"}).network.paths[0].bps_back,
            std::nullopt);
}

TEST(Overrides, ReachIntoLists) {
  const std::string text =
      "model: {experts: 4}\n"
      "data: {domains: [{name: toy, synthetic: true, synthetic_tokens: 1000}]}\n"
      "nodes: {groups: [{count: 1}, {count: 3, speed: 2}]}\n";
  const Scenario s = Parse(text, {"nodes.groups.0.speed=3", "nodes.groups.1.link.up=5 Mbps"});
  EXPECT_EQ(s.nodes.groups[0].speed, 3);
  EXPECT_EQ(s.nodes.groups[1].speed, 2);
  EXPECT_EQ(s.nodes.groups[1].link.up_bps, 5e6);
  EXPECT_EQ(Parse(text, {"nodes.groups=[{count: 2}]"}).nodes.groups.size(), 1u);
  EXPECT_EQ(ParseError(text, {"nodes.groups.2.speed=3"}),
            "--set nodes.groups.2.speed=3: nodes.groups: there is no item 2; the last is 1");
  EXPECT_EQ(ParseError(text, {"nodes.groups.x.speed=3"}),
            "--set nodes.groups.x.speed=3: nodes.groups: is a list; 'x' is no index");
  EXPECT_EQ(ParseError(text, {"network.paths.0.rtt=1 s"}),
            "--set network.paths.0.rtt=1 s: network.paths: the list is empty");
}

TEST(Overrides, ErrorsNameTheArgument) {
  EXPECT_EQ(ParseError(kSmall, {"sync.evry=3"}),
            "--set sync.evry=3: unknown key 'evry' in 'sync'; did you mean 'every'?");
  EXPECT_EQ(ParseError(kSmall, {"sync.every=x"}),
            "--set sync.every=x: sync.every: 'x' is not a whole number of at least 1");
  EXPECT_EQ(ParseError(kSmall, {"sync.every="}),
            "--set sync.every=: sync.every: has no value; it must be a whole number of at least 1");
  EXPECT_EQ(ParseError(kSmall, {"sync.every"}),
            "--set sync.every: must be key=value, for example sync.every=50");
  EXPECT_EQ(ParseError(kSmall, {"=5"}), "--set =5: must be key=value, for example sync.every=50");
  EXPECT_EQ(ParseError(kSmall, {"sync..every=5"}),
            "--set sync..every=5: a part of the key is empty");
  EXPECT_EQ(
      ParseError(kSmall, {"sync.every.x=5"}),
      "--set sync.every.x=5: sync.every: must be a whole number of at least 1, not a mapping");
  EXPECT_EQ(ParseError(kSmall, {"sync={every: 1, every: 2}"}),
            "--set sync={every: 1, every: 2}: the key 'every' is here twice");
  // What does not fit is said of the argument that made it so.
  EXPECT_EQ(
      ParseError(kSmall + "training: {sequences: 8}\n", {"training.micro_sequences=3"}),
      "--set training.micro_sequences=3: training.micro_sequences: is 3, which does not divide "
      "training.sequences, 8; 2 or 4 would");
}

TEST(Files, ASectionMayComeFromOne) {
  const TempFolder folder;
  folder.Write("models/m.yaml", "layers: 2\nexperts: 6\nwidth: 32\n");
  const std::string rest =
      "nodes: {count: 2}\ndata: {domains: [{name: t, synthetic: true, synthetic_tokens: 9}]}\n";
  const std::string plain = folder.Write("plain.yaml", rest + "model: models/m.yaml\n");
  EXPECT_EQ(ReadScenario(plain).model.experts, 6);
  EXPECT_EQ(ReadScenario(plain).name, "plain");
  const std::string changed =
      folder.Write("deeper/changed.yaml", rest + "model: {base: ../models/m.yaml, layers: 5}\n");
  EXPECT_EQ(ReadScenario(changed).model.layers, 5);
  EXPECT_EQ(ReadScenario(changed).model.experts, 6);
  // In an override too: from the scenario's folder, the defaults first.
  const std::string other = folder.Write("other.yaml", rest + "model: {experts: 4, heads: 2}\n");
  const Scenario s = ReadScenario(other, {"model=models/m.yaml", "model.layers=7"});
  EXPECT_EQ(s.model.layers, 7);
  EXPECT_EQ(s.model.experts, 6);
  EXPECT_EQ(s.model.heads, trainer::ModelConfig{}.heads);
}

TEST(Files, WhatTheyReplaceIsForgotten) {
  const TempFolder folder;
  const std::string m = folder.Write("m.yaml", "heads: 6\nhead_width: 8\nexperts: 4\n");
  EXPECT_EQ(ParseError(kSmall + "training:\n", {"model.kv_heads=2", "model=" + m}),
            "--set model=" + m + ": model: kv_heads is 4; it must divide heads, which is 6");
}

TEST(Files, AScenarioMayBuildOnAnother) {
  const TempFolder folder;
  folder.Write("base.yaml", kSmall + "seed: 9\nname: base name\n");
  const std::string file = folder.Write("variant.yaml", "base: base.yaml\nsync: {every: 10}\n");
  const Scenario s = ReadScenario(file);
  EXPECT_EQ(s.name, "variant");
  EXPECT_EQ(s.seed, 9u);
  EXPECT_EQ(s.sync.schedule.every, 10);
  EXPECT_EQ(s.nodes.count, 2);
  EXPECT_EQ(ReadScenario(folder.Path("base.yaml")).name, "base name");
}

TEST(Files, ErrorsNameTheFileThatHoldsThem) {
  const TempFolder folder;
  const std::string m = folder.Write("m.yaml", "layers: 2\nexpert: 6\n");
  const std::string file = folder.Write("s.yaml", kSmall + "training:\n  base: t.yaml\n");
  EXPECT_EQ(ErrorOf([&] { ReadScenario(file); }), file + ":6: training: there is no file 't.yaml'");
  const std::string uses = folder.Write("u.yaml", "model: m.yaml\n");
  EXPECT_EQ(ErrorOf([&] { ReadScenario(uses); }),
            m + ":2: unknown key 'expert' in 'model'; did you mean 'experts'?");
  const std::string loop = folder.Write("loop.yaml", "base: loop.yaml\n");
  EXPECT_EQ(ErrorOf([&] { ReadScenario(loop); }),
            loop + ":1: scenario: files that name each other are nested too deeply");
  EXPECT_EQ(ErrorOf([&] { ReadModel(m); }),
            m + ":2: unknown key 'expert' in 'model'; did you mean 'experts'?");
}

TEST(Files, DataIsFoundBesideTheScenario) {
  const TempFolder folder;
  const std::string text = folder.Write("texts/a.txt", "hello");
  const std::string file = folder.Write(
      "s.yaml", "nodes: {count: 1}\ndata: {domains: [{name: a, files: texts/a.txt}]}\n");
  EXPECT_EQ(ReadScenario(file).data.domains[0].files, std::vector<std::string>{text});
  const std::string other = folder.Write("texts/b.txt", "hello");
  EXPECT_EQ(ReadScenario(file, {"data.domains.0.files.0=texts/b.txt"}).data.domains[0].files,
            std::vector<std::string>{other});
  EXPECT_EQ(ErrorOf([&] { ReadScenario(file, {"data.domains.0.files=[texts/c.txt]"}); }),
            "--set data.domains.0.files=[texts/c.txt]: data.domains.0.files.0: there is no file "
            "'texts/c.txt'");
  EXPECT_EQ(ErrorOf([&] { ReadScenario(file, {"training.start_from=texts"}); }),
            "--set training.start_from=texts: training.start_from: there is no file 'texts'");
}

}  // namespace
}  // namespace spes::scenarios
