// What different settings of the scheme have in common, with a real model in double precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tests/trainer/protocol/memory_recorder.h"
#include "tests/trainer/protocol/scripted_runtime.h"
#include "trainer/data/keyed_random.h"
#include "trainer/model/affinity.h"
#include "trainer/model/autograd.h"
#include "trainer/model/initial_world.h"
#include "trainer/model_node.h"
#include "trainer/protocol/coordinator.h"
#include "trainer/protocol/peer.h"

namespace spes::trainer {
namespace {

constexpr std::int64_t kContext = 12, kSequences = 2, kSteps = 6;

ModelNodeConfig Small() {
  ModelNodeConfig config;
  config.model = {.vocabulary = 32,
                  .layers = 2,
                  .width = 16,
                  .heads = 2,
                  .kv_heads = 2,
                  .experts = 4,
                  .experts_per_token = 2,
                  .expert_width = 12,
                  .dtype = DType::kFloat64};
  config.optimizer.warmup_steps = 2;
  config.optimizer.decay_steps = kSteps;
  config.sequences = kSequences;
  config.context = kContext;
  return config;
}

// Node n of N reads its sequences of every step; one source with all of them reads those of node 0,
// then of node 1, and so on.
class StepTokens final : public BatchSource {
 public:
  StepTokens(int first_node, int nodes) : first_(first_node), nodes_(nodes) {}
  void Next(std::int64_t sequences, Batch& out) override {
    out = {sequences, kContext, {}};
    for (int node = first_; node < first_ + nodes_; ++node) {
      for (std::int64_t i = 0; i < sequences / nodes_ * (kContext + 1); ++i) {
        const auto seed = static_cast<std::uint64_t>(1000 * step_ + node);
        out.tokens.push_back(
            static_cast<std::int32_t>(Key(seed, static_cast<std::uint64_t>(i)) % 32));
      }
    }
    ++step_;
  }
  std::string Position() const override { return std::to_string(step_); }
  void Seek(const std::string& position) override { step_ = std::stoi(position); }

 private:
  int first_, nodes_, step_ = 0;
};

struct Trained {
  World world;
  MemoryRecorder recorder;
};

// Trains `nodes` nodes over a runtime without a network.
void Train(int nodes, CoordinatorConfig config, ModelNodeConfig node_config, Trained& run,
           PeerConfig peer = {}) {
  InitLibTorch();
  config.scenario_hash = peer.scenario_hash = "same";
  const World start = MakeInitialWorld(node_config.model, MakeBlockTable(node_config.model), 5);
  const Allocation allocation = MakeAllocation(config.allocation, *start.table, nodes);
  ScriptedRuntime runtime;
  Coordinator coordinator(config, allocation, start, runtime.endpoint(kCoordinator), run.recorder,
                          [&run](const PublishedRound& p) { run.world = p.world; });
  runtime.Connect(kCoordinator,
                  [&](NodeId from, const Message& m) { coordinator.OnMessage(from, m); });
  const std::atomic<bool> stop{false};
  std::vector<std::unique_ptr<Node>> all;
  std::vector<std::unique_ptr<Peer>> peers;
  peer.world_hash = WorldHash(start);
  peer.step_time = [](std::int64_t) { return std::chrono::seconds(1); };
  for (NodeId n = 0; n < nodes; ++n) {
    all.push_back(MakeModelNode(node_config, start, allocation.blocks(n),
                                std::make_unique<StepTokens>(n, 1)));
    peer.node = n;
    peers.push_back(std::make_unique<Peer>(peer, *all.back(), start, runtime.endpoint(n), stop));
    runtime.Connect(n, [p = peers.back().get()](NodeId, const Message& m) { p->OnMessage(m); });
  }
  for (auto& each : peers) each->Start();
  runtime.loop.Run();
  ASSERT_TRUE(coordinator.finished());
}

// One node alone, without any protocol.
World TrainAlone(ModelNodeConfig config, int batches) {
  InitLibTorch();
  World world = MakeInitialWorld(config.model, MakeBlockTable(config.model), 5);
  std::vector<BlockId> ids;
  for (BlockId id = 0; id < world.table->size(); ++id) ids.push_back(id);
  config.micro_sequences = config.sequences;
  config.sequences *= batches;
  const auto node = MakeModelNode(config, world, ids, std::make_unique<StepTokens>(0, batches));
  node->TrainSteps(1, kSteps, false);
  for (NodeBlock& block : node->Read(node->trainable(), false)) {
    world.blocks[static_cast<std::size_t>(block.id)].data = std::move(block.data);
  }
  return world;
}

double LargestDifference(const World& a, const World& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.blocks.size(); ++i) {
    const auto x = a.blocks[i].data->as<double>(), y = b.blocks[i].data->as<double>();
    for (std::size_t k = 0; k < x.size(); ++k) largest = std::max(largest, std::abs(x[k] - y[k]));
  }
  return largest;
}

CoordinatorConfig Every(int every, AllocationKind kind = AllocationKind::kAll) {
  CoordinatorConfig config;
  config.schedule = {.total_steps = kSteps, .every = every};
  config.allocation.kind = kind;
  return config;
}

CoordinatorConfig DataParallel() {
  CoordinatorConfig config = Every(1);
  config.update.gradients = Small().optimizer;
  return config;
}

ModelNodeConfig GradientsOnly() {
  ModelNodeConfig config = Small();
  config.gradients_only = true;
  return config;
}

TEST(Schemes, FederatedAveragingOfOneNodeIsPlainTraining) {
  Trained run;
  Train(1, Every(2), Small(), run);
  EXPECT_EQ(WorldHash(run.world), WorldHash(TrainAlone(Small(), 1)));
}

TEST(Schemes, DataParallelIsOneNodeThatAccumulatesTheSameMicrobatches) {
  for (const int nodes : {1, 2, 3}) {
    Trained run;
    Train(nodes, DataParallel(), GradientsOnly(), run);
    EXPECT_LT(LargestDifference(run.world, TrainAlone(Small(), nodes)), 1e-12) << nodes;
  }
}

// Averaging after every step is not that: each node clips and scales its own gradient first.
TEST(Schemes, AveragingEveryStepIsNotDataParallel) {
  Trained averaged, parallel;
  Train(2, Every(1), Small(), averaged);
  Train(2, DataParallel(), GradientsOnly(), parallel);
  EXPECT_GT(LargestDifference(averaged.world, parallel.world), 1e-6);
}

TEST(Schemes, MomentsHandedOverMakeRotationWithinOneNodeNothing) {
  CoordinatorConfig config = Every(2, AllocationKind::kContiguous);
  Trained still, rotating;
  Train(1, config, Small(), still);
  config.allocation.rotate_every = 1;
  Train(1, config, Small(), rotating);
  EXPECT_EQ(WorldHash(still.world), WorldHash(rotating.world));
}

// Four nodes, one expert each, that go round: with the moments handed over, the moments of an
// expert have seen all steps; reset, two rounds only.
TEST(Schemes, RotatedMomentsAreWhatTheRuleSays) {
  std::vector<std::string> hashes;
  for (const RotatedMoments rule :
       {RotatedMoments::kHandedOver, RotatedMoments::kReset, RotatedMoments::kKept}) {
    CoordinatorConfig config = Every(1, AllocationKind::kContiguous);
    config.allocation.rotate_every = 1;
    config.allocation.moments = rule;
    PeerConfig peer;
    peer.keep_moments = rule == RotatedMoments::kKept;
    Trained run;
    Train(2, config, Small(), run, peer);
    hashes.push_back(WorldHash(run.world));
  }
  EXPECT_NE(hashes[0], hashes[1]);
  EXPECT_NE(hashes[0], hashes[2]);
  EXPECT_NE(hashes[1], hashes[2]);
}

TEST(Schemes, CodedRunsStayNearTheExactOne) {
  Trained exact, coded;
  Train(2, Every(2), Small(), exact);
  CoordinatorConfig config = Every(2);
  PeerConfig peer;
  peer.codec =
      config.update.codec = {.kind = CodecKind::kInt8, .differences = true, .error_feedback = true};
  Train(2, config, Small(), coded, peer);
  const double difference = LargestDifference(exact.world, coded.world);
  EXPECT_GT(difference, 0);
  EXPECT_LT(difference, 1e-3);
}

TEST(Schemes, ABiasDrawsTokensToANodesOwnExperts) {
  const auto share = [](double bias, std::int64_t length) {
    ModelNodeConfig config = Small();
    config.routing_bias = bias;
    config.routing_bias_length = length;
    const World world = MakeInitialWorld(config.model, MakeBlockTable(config.model), 5);
    const Allocation allocation =
        MakeAllocation({.kind = AllocationKind::kContiguous}, *world.table, 4);
    const auto node =
        MakeModelNode(config, world, allocation.blocks(1), std::make_unique<StepTokens>(0, 1));
    const RoutingCounts counts = node->TrainSteps(1, 2, false).routing;
    double own = 0, all = 0;
    for (const auto& layer : counts.routed) {
      own += static_cast<double>(layer[1]);
      for (const auto n : layer) all += static_cast<double>(n);
    }
    return own / all;
  };
  const double without = share(0, 0);
  EXPECT_EQ(share(3, 1), without) << "over before the first step";
  EXPECT_GT(share(3, 100), without);
  EXPECT_NEAR(share(80, 1000), 0.5, 1e-9) << "always one of the two";
  EXPECT_LT(share(-3, 100), without);
}

TEST(Affinity, IsTheRoutersShareOfTheEmbeddings) {
  InitLibTorch();
  ModelConfig config = Small().model;
  config.norm_eps = 0;
  // Two tokens, two widths: token 0 is (1, 1), token 1 is (1, −1); expert 1 likes the second.
  const at::Tensor embed = at::tensor({1.0, 1.0, 1.0, -1.0}, at::kDouble).view({2, 2});
  const at::Tensor router = at::tensor({0.0, 0.0, 0.0, -1.0}, at::kDouble).view({2, 2});
  const Batch batch{2, 2, {0, 1, 1, 1, 1, 0}};  // inputs 0 1 and 1 1
  const auto share =
      RouterAffinity(config, {embed, at::ones({2}, at::kDouble), router}, {1}, batch);
  const double token0 = 1 / (1 + std::exp(1.0)), token1 = 1 / (1 + std::exp(-1.0));
  ASSERT_EQ(share.size(), 2u);
  EXPECT_NEAR(share[0], (token0 + token1) / 2, 1e-12);
  EXPECT_NEAR(share[1], token1, 1e-12);
  EXPECT_EQ(RouterAffinity(config, {embed, at::ones({2}, at::kDouble), router}, {}, batch)[0], 0);
}

TEST(Affinity, KeepsTheNearestInTheirOrder) {
  Batch batch{4, 1, {0, 0, 1, 1, 2, 2, 3, 3}};
  KeepNearest({0.2, 0.9, 0.1, 0.9}, 3, batch);
  EXPECT_EQ(batch.sequences, 3);
  EXPECT_EQ(batch.tokens, (std::vector<std::int32_t>{0, 0, 1, 1, 3, 3}));
  KeepNearest({0.5, 0.5, 0.5}, 1, batch);
  EXPECT_EQ(batch.tokens, (std::vector<std::int32_t>{0, 0})) << "the earlier of equals";
}

TEST(Affinity, DrawsWhatTheOwnExpertsAreAskedFor) {
  ModelNodeConfig config = Small();
  config.sequences = 2;
  const World world = MakeInitialWorld(config.model, MakeBlockTable(config.model), 5);
  const Allocation allocation =
      MakeAllocation({.kind = AllocationKind::kContiguous}, *world.table, 4);
  const auto share = [&](int candidates) {
    config.candidates = candidates;
    const auto node =
        MakeModelNode(config, world, allocation.blocks(2), std::make_unique<StepTokens>(0, 1));
    const TrainResult result = node->TrainSteps(1, 20, false);
    EXPECT_EQ(result.steps.front().tokens, kSequences * kContext);
    double all = 0;
    for (const auto n : result.routing.routed[0]) all += static_cast<double>(n);
    return static_cast<double>(result.routing.routed[0][2]) / all;
  };
  EXPECT_GT(share(16), 1.1 * share(1));
}

}  // namespace
}  // namespace spes::trainer
