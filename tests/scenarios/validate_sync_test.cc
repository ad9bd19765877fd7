// What settings of `sync` go together, and what is said where they do not.
#include <gmock/gmock.h>

#include "scenarios/sync_builder.h"
#include "tests/scenarios/scenario_testing.h"

namespace spes::scenarios {
namespace {

using ::testing::HasSubstr;

std::string Error(std::vector<std::string> overrides) {
  overrides.insert(overrides.begin(), {"model.experts=4", "nodes.count=4", "training.steps=40"});
  return ParseError(kSmall, overrides);
}

struct Case {
  std::vector<std::string> overrides;
  const char* said;  // "no error", or a part of it
};

void PrintTo(const Case& c, std::ostream* out) {
  for (const std::string& text : c.overrides) *out << text << ' ';
}

class SyncRules : public ::testing::TestWithParam<Case> {};

TEST_P(SyncRules, AreSaid) { EXPECT_THAT(Error(GetParam().overrides), HasSubstr(GetParam().said)); }

INSTANTIATE_TEST_SUITE_P(
    All, SyncRules,
    ::testing::Values(
        Case{{"sync.every=8", "sync.fragments=4", "sync.overlap=1", "sync.keep_own=0.5"},
             "no error"},
        Case{{"sync.every=8", "sync.fragments=9"}, "fragments is 9"},
        Case{{"sync.every=8", "sync.overlap=8"}, "overlap is 8"},
        Case{{"sync.every=8", "sync.keep_own=0.5"}, "sync.keep_own: is for what nodes"},
        Case{{"sync.every=8", "sync.experts_every=12"}, "experts_every is 12"},
        Case{{"sync.every=8", "sync.first=9"}, "first is 9"},
        Case{{"sync.every=8", "sync.fragments=2", "sync.merge.interval=8", "sync.merge.length=9"},
             "2 fragments"},
        Case{{"sync.every=2", "sync.experts_every=4", "sync.merge.interval=6",
              "sync.merge.length=9"},
             "not a multiple of sync.experts_every, 4; 4 or 8 would do"},
        Case{{"sync.every=8", "sync.first=1", "sync.merge.interval=3", "sync.merge.length=9"},
             "no error"},
        Case{{"sync.method=data_parallel"}, "sync.every"},
        Case{{"sync.method=data_parallel", "sync.every=1"}, "sync.allocation: must be all"},
        Case{{"sync.method=data_parallel", "sync.every=1", "sync.allocation=all"}, "no error"},
        Case{{"sync.method=data_parallel", "sync.every=1", "sync.allocation=all",
              "sync.codec.up={kind: int8, differences: true}"},
             "sync.codec.up.differences"},
        Case{{"sync.method=data_parallel", "sync.every=1", "sync.allocation=all",
              "sync.moments=reset"},
             "sync.moments"},
        Case{{"sync.allocation=load"}, "rotate.every"},
        Case{{"sync.allocation=load", "sync.rotate.every=2"}, "no error"},
        Case{{"sync.allocation=memory"}, "does not hold what every node needs"},
        Case{{"sync.allocation=list", "sync.owners=[0, 1, 2, '0-3']"}, "no error"},
        Case{{"sync.allocation=list", "sync.owners=[0, 1, 2]"}, "sync.allocation"},
        Case{{"sync.allocation=list", "sync.owners=[0, 1, 2, 4]"},
             "sync.owners.3: '4' names nodes that are not there; they are 0 to 3"},
        Case{{"sync.owners=[0, 1, 2, 3]"}, "sync.owners"},
        Case{{"sync.replicas=5"}, "sync.allocation"},
        Case{{"sync.frozen=[{nodes: '0-1', parts: [layers.0.]}]"}, "no error"},
        Case{{"sync.frozen=[{nodes: '0-3', parts: [layers.0.]}]"}, "sync.allocation"},
        Case{{"sync.frozen=[{nodes: '0', parts: [nothing]}]"}, "sync.allocation"},
        Case{{"sync.rotate.every=2", "sync.every=4", "sync.fragments=2"}, "sync.rotate.every"},
        Case{{"sync.rotate.every=2", "network.exchange.pattern=ring"}, "exchange by ring"},
        Case{{"sync.rotate.every=1", "sync.moments=reset"}, "sync.rotate.moments"},
        Case{{"sync.rotate.every=1", "sync.moments=averaged"}, "no error"},
        Case{{"sync.rotate.every=1", "sync.moments=averaged", "sync.rotate.moments=kept"},
             "sync.rotate.moments"},
        Case{{"sync.rotate.every=1",
              "sync.frozen=[{nodes: '0', parts: [embed, layers, final_norm, lm_head]}]"},
             "sync.frozen"},
        Case{{"sync.allocation=all", "training.routing_bias=1", "training.routing_bias_length=5"},
             "training.routing_bias"},
        Case{{"training.candidates=3"}, "no error"},
        Case{{"sync.replicas=4", "training.candidates=3"}, "training.candidates"},
        Case{{"sync.late=next_round"}, "no result is ever late"},
        Case{{"sync.late=next_round", "sync.quorum=2", "sync.staleness_power=1"}, "no error"},
        Case{{"sync.staleness_power=1"}, "sync.late is drop"},
        Case{{"sync.late=next_round", "sync.quorum=2", "sync.rotate.every=1"}, "no rotation"},
        Case{{"sync.codec.up={kind: top_k, keep: 0.1}", "sync.codec.down={kind: bf16, zstd: 3}"},
             "no error"},
        Case{{"sync.codec.up={keep: 0.1}"}, "sync.codec.up"},
        Case{{"sync.codec.down={skip_unchanged: true}"}, "sync.codec.down"},
        Case{{"sync.trust={norm_bound: 3, window: 4, strikes: 2, held_out: 512, margin: 0.1}"},
             "no error"},
        Case{{"sync.trust.norm_bound=1"}, "sync.trust.norm_bound: is 1, but the others' median"},
        Case{{"nodes.count=3", "sync.trust.norm_bound=3"},
             "sync.trust.norm_bound: compares each node with at least three others"},
        Case{{"sync.trust.norm_bound=3", "sync.quorum=3"},
             "sync.quorum: is 3, too few for sync.trust.norm_bound"},
        Case{{"sync.trust.norm_bound=3", "sync.quorum=4"}, "no error"},
        Case{{"nodes.count=3", "sync.trust.held_out=100", "sync.quorum=1"}, "no error"},
        Case{{"nodes.count=3", "sync.trust.held_out=100"}, "no error"},
        Case{{"sync.trust.norm_bound=3", "network.exchange.pattern=ring"}, "exchanged by ring"},
        Case{{"sync.trust.held_out=9", "network.exchange.pattern=direct"},
             "sync.trust.held_out: is the coordinator's"},
        Case{{"sync.method=data_parallel", "sync.every=1", "sync.allocation=all",
              "sync.trust.norm_bound=3"},
             "no error"},
        Case{{"sync.method=data_parallel", "sync.every=1", "sync.allocation=all",
              "sync.trust.held_out=100"},
             "sync.trust.held_out: tries out what nodes have trained"},
        Case{{"nodes.count=0",
              "nodes.groups=[{count: 3}, {poison: {kind: sign_flip, factor: 2, after: 3}}]"},
             "no error"},
        Case{{"nodes.count=0", "nodes.groups=[{count: 3}, {poison: {factor: 2}}]"},
             "nodes.groups.1.poison.factor: is of the kinds noise"},
        Case{{"nodes.count=0", "nodes.groups=[{count: 3}, {poison: {kind: nan, factor: 2}}]"},
             "nodes.groups.1.poison.factor"},
        Case{{"nodes.count=0", "nodes.groups=[{count: 4, poison: {after: 2}}]"},
             "nodes.groups.0.poison.after"},
        Case{{"sync.method=data_parallel", "sync.every=1", "sync.allocation=all", "nodes.count=0",
              "nodes.groups=[{count: 4, poison: {kind: stale}}]"},
             "nodes.groups.0.poison.kind: cannot be stale"},
        Case{{"sync.reduction.shared={kind: trimmed_mean, trim: 0.4}"}, "no error"},
        Case{{"sync.reduction.shared={kind: trimmed_mean, trim: 0.5}"}, "trim"}));

TEST(ParseNodes, ReadsListsAndRanges) {
  using ::testing::ElementsAre;
  EXPECT_THAT(ParseNodes("3", 4), ElementsAre(3));
  EXPECT_THAT(ParseNodes("7,0-2", 8), ElementsAre(0, 1, 2, 7));
  for (const char* text : {"", "a", "1-", "-1", "1,,2", "1 2", "2-1", "0,0", "0-2,1", "8"}) {
    EXPECT_THROW(ParseNodes(text, 8), std::invalid_argument) << text;
  }
}

TEST(BuildCapacities, MemoryLeavesRoomForExpertsAfterWhatAllNodesNeed) {
  const Scenario s = Parse(With("nodes", "{groups: [{count: 2, memory: 1 GiB}, {memory: 2 GiB}]}"));
  const auto table = trainer::MakeBlockTable(s.model);
  const auto capacities = BuildCapacities(s, *table);
  ASSERT_EQ(capacities.size(), 3u);
  const double fixed = 4.0 * static_cast<double>(table->TotalElements()) +
                       12.0 * static_cast<double>(table->SharedElements());
  EXPECT_EQ(capacities[0].memory_bytes, 0x1p30 - fixed);
  EXPECT_EQ(capacities[2].memory_bytes, 0x1p31 - fixed);
}

TEST(BuildTrust, SaysWhatTheKeysSay) {
  const Scenario s = Parse(
      With("sync",
           "{every: 5, trust: {norm_bound: 3, window: 4, strikes: 2, held_out: 600, margin: 0.1}}"),
      {"nodes.count=4", "nodes.compute.step_time=3 s"});
  const auto table = trainer::MakeBlockTable(s.model);
  const trainer::TrustConfig trust = BuildCoordinatorConfig(s, *table).trust;
  EXPECT_EQ(trust.norm_bound, 3);
  EXPECT_EQ(trust.window, 4);
  EXPECT_EQ(trust.strikes, 2);
  EXPECT_EQ(trust.margin, 0.1);
  const auto step_tokens = static_cast<double>(s.training.sequences * s.training.context);
  EXPECT_NEAR(sim::ToSeconds(trust.held_out_time), 600 / step_tokens, 1e-9);
  EXPECT_EQ(trust.step_size(7), trainer::LearningRate(BuildOptimizer(s), 7));
  EXPECT_FALSE(trust.held_out) << "that takes the data";

  Scenario flops = s;
  flops.nodes.compute.kind = trainer::ComputeCost::kFlops;
  EXPECT_NEAR(sim::ToSeconds(BuildCoordinatorConfig(flops, *table).trust.held_out_time),
              600 * trainer::TrainingFlopsPerToken(s.model, s.training.context) / 3 /
                  (s.nodes.compute.device_flops * s.nodes.compute.efficiency),
              1e-9);
  EXPECT_FALSE(BuildCoordinatorConfig(Parse(kSmall), *table).trust.on());
}

TEST(BuildPoison, IsThatOfTheNodesGroup) {
  const Scenario s = Parse(With(
      "nodes", "{groups: [{count: 2}, {count: 2, poison: {kind: noise, factor: 3, after: 1}}]}"));
  EXPECT_EQ(BuildPeerConfig(s, 1).poison.kind, trainer::PoisonKind::kNone);
  const trainer::PoisonConfig poison = BuildPeerConfig(s, 2).poison;
  EXPECT_EQ(poison.kind, trainer::PoisonKind::kNoise);
  EXPECT_EQ(poison.factor, 3);
  EXPECT_EQ(poison.after, 1);
  EXPECT_NE(poison.seed, BuildPeerConfig(s, 3).poison.seed);
}

}  // namespace
}  // namespace spes::scenarios
