#include "scenarios/validate.h"

#include "tests/scenarios/scenario_testing.h"

namespace spes::scenarios {
namespace {

TEST(Validate, Nodes) {
  EXPECT_EQ(ParseError(With("nodes", "{}")),
            "s.yaml:1: nodes.count: there are no nodes; give nodes.count or nodes.groups");
  EXPECT_EQ(ParseError(With("nodes", "{count: 0}")),
            "s.yaml:1: nodes.count: there are no nodes; give nodes.count or nodes.groups");
  EXPECT_EQ(ParseError(With("nodes", "{count: -4}")),
            "s.yaml:1: nodes.count: '-4' is not a whole number of at least 0 and at most 100000");
  EXPECT_EQ(ParseError(With("nodes", "{count: 5, groups: [{count: 2}, {}]}")),
            "s.yaml:1: nodes.count: is 5, but the groups hold 3 nodes; leave one of them out");
  EXPECT_EQ(ParseError(With("nodes", "{groups: [{count: 60000}, {count: 60000}]}")),
            "s.yaml:1: nodes.groups: hold 120000 nodes; at most 100000 are allowed");
  EXPECT_EQ(ParseError(With("nodes", "{groups: [{count: 2}, {count: 2}]}")), "no error");
}

TEST(Validate, ExpertsNeedNotBeAMultipleOfTheNodes) {
  EXPECT_EQ(ParseError(With("nodes", "{count: 3}")), "no error");
  EXPECT_EQ(ParseError(kSmall, {"nodes.count=8"}), "no error");  // some own nothing
  EXPECT_EQ(ParseError(kSmall, {"nodes.count=8", "model.experts=0"}), "no error");
}

TEST(Validate, ModelSizes) {
  EXPECT_EQ(ParseError(With("model", "{experts: 4, width: 100, heads: 3, kv_heads: 3}")),
            "s.yaml:2: model: width 100 is not a multiple of heads 3; choose such a width or give "
            "head_width");
  EXPECT_EQ(ParseError(With("model", "\n  experts: 4\n  heads: 6\n  head_width: 8\n  kv_heads: 4")),
            "s.yaml:6: model: kv_heads is 4; it must divide heads, which is 6");
  EXPECT_EQ(ParseError(kSmall, {"model.kv_heads=3"}),
            "--set model.kv_heads=3: model: kv_heads is 3; it must divide heads, which is 4");
  EXPECT_EQ(ParseError(With("model", "{experts: 4, experts_per_token: 5}")),
            "s.yaml:2: model: experts_per_token is 5; from 1 to experts, which is 4");
  EXPECT_EQ(ParseError(With("model", "{layers: 4096, experts: 4096}")),
            "s.yaml:2: model.experts: 4096 in each of 4096 layers are more than 1000000");
  EXPECT_EQ(ParseError(kSmall + "training: {}\n", {"model.vocabulary=255"}), "no error");
}

TEST(Validate, MergeIntervalIsAMultipleOfTheRound) {
  EXPECT_EQ(
      ParseError(With("sync", "\n  every: 25\n  merge:\n    interval: 30\n    length: 9")),
      "s.yaml:7: sync.merge.interval: is 30, not a multiple of sync.every, 25; 25 or 50 would "
      "do");
  EXPECT_EQ(ParseError(With("sync", "{every: 25, merge: {interval: 20, length: 9}}")),
            "s.yaml:4: sync.merge.interval: is 20, not a multiple of sync.every, 25; 25 would do");
  EXPECT_EQ(ParseError(With("sync", "{every: 25, merge: {interval: 50, length: 9}}")), "no error");
  // The last round is shorter where the steps are no multiple of it.
  EXPECT_EQ(ParseError(With("sync", "{every: 25, merge: {interval: 50, length: 9}}"),
                       {"training.steps=60"}),
            "no error");
}

TEST(Validate, MergeThatCannotMerge) {
  EXPECT_EQ(
      ParseError(With("sync", "{every: 25, merge: {interval: 25}}")),
      "s.yaml:4: sync.merge.length: is 0, so that nothing would ever be merged; give the step "
      "at which merging ends, or set sync.merge.interval to 0");
  EXPECT_EQ(ParseError(With("sync", "{every: 25, merge: {interval: 25, length: 9}}"),
                       {"model.experts=0"}),
            "s.yaml:4: sync.merge.interval: asks for merging, but the model has 0 experts");
}

TEST(Validate, Quorum) {
  EXPECT_EQ(ParseError(With("sync", "{quorum: 3}")),
            "s.yaml:4: sync.quorum: is 3, but there are only 2 nodes");
  EXPECT_EQ(ParseError(With("sync", "{quorum: 2}")), "no error");
}

TEST(Validate, Training) {
  EXPECT_EQ(ParseError(kSmall + "training: {steps: 0}\n"),
            "s.yaml:5: training.steps: '0' is not a whole number of at least 1");
  EXPECT_EQ(ParseError(kSmall + "training: {context: 0}\n"),
            "s.yaml:5: training.context: '0' is not a whole number of at least 1 and at most "
            "16777216");
  EXPECT_EQ(
      ParseError(kSmall + "training: {sequences: 6, micro_sequences: 4}\n"),
      "s.yaml:5: training.micro_sequences: is 4, which does not divide training.sequences, 6; "
      "3 or 6 would");
  EXPECT_EQ(
      ParseError(kSmall + "training: {sequences: 6, micro_sequences: 9}\n"),
      "s.yaml:5: training.micro_sequences: is 9, which does not divide training.sequences, 6; "
      "6 would");
  EXPECT_EQ(ParseError(kSmall + "training: {sequences: 6, micro_sequences: 3}\n"), "no error");
  EXPECT_EQ(ParseError(kSmall + "training: {warmup_steps: 20, decay_steps: 10}\n"),
            "s.yaml:5: training.decay_steps: is 10, before the end of the warm-up at step 20");
}

TEST(Validate, Devices) {
  const auto devices = [](const std::string& text) {
    return ParseError(kSmall + "devices: " + text + "\n");
  };
  EXPECT_EQ(devices("cpu"), "no error");
  EXPECT_EQ(devices("[cuda:0, cuda:1, cpu]"), "no error");  // whether they are there, a run sees
  EXPECT_EQ(devices("[]"), "s.yaml:5: devices: there is none; cpu is always there");
  EXPECT_EQ(devices("[cpu, gpu]"),
            "s.yaml:5: devices: 'gpu' is no device; there are cpu, cuda:0, cuda:1 …");
  EXPECT_EQ(devices("cuda"),
            "s.yaml:5: devices: 'cuda' is no device; there are cpu, cuda:0, cuda:1 …");
}

TEST(Validate, DevicesOfANode) {
  const auto nodes = [](const std::string& devices, const std::string& training) {
    return ParseError(With("nodes", "{count: 2, devices_per_node: 2}") + "devices: " + devices +
                      "\ntraining: {" + training + "}\n");
  };
  EXPECT_EQ(nodes("[cpu, cpu]", "sequences: 8, micro_sequences: 4"), "no error");
  EXPECT_EQ(nodes("[cpu, cpu]", "sequences: 9, micro_sequences: 3"), "no error");  // 2 and 1
  EXPECT_EQ(nodes("[cpu, cpu, cpu]", "sequences: 8, micro_sequences: 4"),
            "s.yaml:1: nodes.devices_per_node: is 2, which does not divide the 3 devices");
  EXPECT_EQ(nodes("[cpu, cpu]", "sequences: 8"),
            "s.yaml:1: nodes.devices_per_node: is 2, but a step has 1 microbatch to share out; "
            "give a smaller training.micro_sequences than 8");
}

TEST(Validate, ComputeDtype) {
  EXPECT_EQ(ParseError(kSmall + "training: {compute_dtype: bfloat16}\n"), "no error");
  EXPECT_EQ(ParseError(kSmall + "training: {compute_dtype: bfloat16}\n", {"model.dtype=float64"}),
            "s.yaml:5: training.compute_dtype: is bfloat16, whose parameters are float32; "
            "model.dtype is float64");
  EXPECT_EQ(ParseError(kSmall, {"model.dtype=float64"}), "no error");
}

TEST(Validate, Data) {
  const auto domain = [](const std::string& text) {
    return ParseError(With("data", "{domains: [" + text + "]}"));
  };
  EXPECT_EQ(ParseError(With("data", "{}")),
            "s.yaml:3: data.domains: there is nothing to train on; name at least one domain");
  EXPECT_EQ(
      domain("{name: x}"),
      "s.yaml:3: data.domains.0: has none of corpus, files, tokens and synthetic; exactly one "
      "says where the text comes from");
  EXPECT_EQ(domain("{name: x, corpus: gcide, synthetic: true, synthetic_tokens: 5}"),
            "s.yaml:3: data.domains.0: has more than one of corpus, files, tokens and synthetic; "
            "exactly one says where the text comes from");
  EXPECT_EQ(domain("{synthetic: true, synthetic_tokens: 5}"),
            "s.yaml:3: data.domains.0: has no name");
  EXPECT_EQ(domain("{name: x, synthetic: true}"),
            "s.yaml:3: data.domains.0: a synthetic domain needs its length, synthetic_tokens");
  EXPECT_EQ(domain("{name: x, synthetic: true, synthetic_tokens: 5, limit_bytes: 1 MB}"),
            "s.yaml:3: data.domains.0.limit_bytes: has no meaning for a synthetic domain");
  EXPECT_EQ(
      domain("{corpus: gcide, synthetic_tokens: 5}"),
      "s.yaml:3: data.domains.0.synthetic_tokens: is of a synthetic domain, which this is not");
  EXPECT_EQ(domain("{corpus: gcide, token_type: uint32}"),
            "s.yaml:3: data.domains.0.token_type: is of the files in `tokens`, which is not given");
  EXPECT_EQ(domain("gcide, {name: gcide, synthetic: true, synthetic_tokens: 5}"),
            "s.yaml:3: data.domains.1: another domain is called 'gcide' as well");
  EXPECT_EQ(
      domain("gcidee"),
      "s.yaml:3: data.domains.0: the catalogue has no corpus 'gcidee'; did you mean 'gcide'?");
}

TEST(Validate, Transport) {
  EXPECT_EQ(ParseError(kSmall + "transport: {mutual: true}\n"),
            "s.yaml:5: transport.mutual: asks for certificates, but transport.keys names none");
  EXPECT_EQ(ParseError(kSmall + "transport: {beat_every: 5 s, dead_after: 9 s}\n"),
            "s.yaml:5: transport.dead_after: is 9 s, less than two beats of transport.beat_every, "
            "5 s");
  EXPECT_EQ(
      ParseError(kSmall + "transport: {kind: tcp}\nnetwork: {fidelity: ideal, exchange: {pattern: "
                          "ring}}\n"),
      "s.yaml:6: network.exchange.pattern: is for simulation; with transport.kind: tcp all "
      "parameters pass through the coordinator, so it must be coordinator");
}

TEST(Validate, Tokens) {
  EXPECT_EQ(
      ParseError(With("data", "{domains: [gcide]}"), {"model.vocabulary=255"}),
      "--set model.vocabulary=255: model.vocabulary: is 255, but bytes as tokens need at least "
      "256");
  EXPECT_EQ(ParseError(kSmall, {"data.tokenizer=sentencepiece"}),
            "--set data.tokenizer=sentencepiece: data.tokenizer: sentencepiece needs the file "
            "data.tokenizer_model");
  const TempFolder folder;
  const std::string model = folder.Write("pieces.model", "x");
  EXPECT_EQ(ParseError(kSmall + "data.tokenizer_model: x\n"),
            "s.yaml:5: unknown key 'data.tokenizer_model' in 'scenario'; there is name, seed, "
            "workers, devices, model, data, training, nodes, sync, network, faults, transport and "
            "output");
  EXPECT_EQ(ParseError(kSmall, {"data.tokenizer_model=" + model}),
            "--set data.tokenizer_model=" + model +
                ": data.tokenizer_model: is for data.tokenizer: sentencepiece");
}

TEST(Validate, WithoutAFileOnlyTheKeyIsNamed) {
  Scenario scenario = Parse(kSmall);
  EXPECT_EQ(ErrorOf([&] { Validate(scenario); }), "no error");
  scenario.sync.quorum = 9;
  EXPECT_EQ(ErrorOf([&] { Validate(scenario); }), "sync.quorum: is 9, but there are only 2 nodes");
}

}  // namespace
}  // namespace spes::scenarios
