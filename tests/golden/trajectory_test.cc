// Four nodes, twelve steps, four rounds and two merges against the reference, through the real
// coordinator, peers, simulated runtime and nodes, by each set of operators.
#include <map>

#include "tests/golden/golden_file.h"
#include "tests/trainer/protocol/memory_recorder.h"
#include "tests/trainer/ways.h"
#include "trainer/model_node.h"
#include "trainer/protocol/coordinator.h"
#include "trainer/protocol/peer.h"
#include "trainer/runtime/sim_runtime.h"

namespace spes::trainer {
namespace {

using golden::GoldenFile;

// The samples of one node, in the reference's order.
class GoldenSource final : public BatchSource {
 public:
  GoldenSource(std::vector<std::int32_t> tokens, std::int64_t context)
      : tokens_(std::move(tokens)), context_(context) {}
  void Next(std::int64_t sequences, Batch& out) override {
    out.sequences = sequences;
    out.context = context_;
    const std::int64_t size = sequences * (context_ + 1);
    out.tokens.assign(tokens_.begin() + at_, tokens_.begin() + at_ + size);
    at_ += size;
  }
  std::string Position() const override { return std::to_string(at_); }
  void Seek(const std::string& position) override { at_ = std::stoll(position); }

 private:
  std::vector<std::int32_t> tokens_;
  std::int64_t context_, at_ = 0;
};

struct Trajectory {
  MemoryRecorder recorder;
  std::map<int, World> worlds;  // by round
};

void RunTrajectory(const GoldenFile& file, const Way& way, int workers, Trajectory& out) {
  ModelConfig model = file.Model("forward/olmoe");
  const auto table = MakeBlockTable(model);
  const World initial = file.ReadWorld("spes/init", table);
  const auto number = [&](const char* name) { return file.Number("spes", name); };
  const int nodes = static_cast<int>(number("N"));
  const auto steps = static_cast<std::int64_t>(number("steps"));
  const auto sequences = static_cast<std::int64_t>(number("B"));
  const auto context = static_cast<std::int64_t>(number("T"));

  sim::Topology topology;
  topology.sites = {"here"};
  topology.paths = {{sim::SitePath{}}};
  for (int n = 0; n <= nodes; ++n) {
    // Unequal links: uploads arrive in another order than that of the nodes.
    topology.hosts.push_back({"host", 0, {.down_bps = 1e9, .up_bps = 1e6 * (1 + n)}});
  }
  const auto network = sim::MakeIdealNetwork(topology, {});
  sim::EventLoop loop(network.get());
  const std::atomic<bool> stop{false};
  std::vector<std::unique_ptr<Node>> node_list;
  std::vector<std::unique_ptr<Peer>> peers;
  ComputePool pool(workers);
  SimRuntime runtime(loop, *network, pool, out.recorder, nodes, 1);

  CoordinatorConfig config;
  config.scenario_hash = "golden";
  config.schedule = {.total_steps = steps, .every = static_cast<int>(number("H"))};
  MergeConfig& merge = config.update.merge;
  merge.interval = static_cast<std::int64_t>(number("merge_every"));
  merge.alpha = number("alpha0");
  merge.length = static_cast<std::int64_t>(number("T_merge"));
  merge.donors = static_cast<int>(number("topk"));
  const Allocation allocation =
      MakeAllocation({.kind = AllocationKind::kContiguous}, *table, nodes);
  Coordinator coordinator(config, allocation, initial, runtime.endpoint(kCoordinator), out.recorder,
                          [&](const PublishedRound& p) { out.worlds[p.round] = p.world; });
  runtime.Connect(kCoordinator,
                  [&](NodeId from, const Message& m) { coordinator.OnMessage(from, m); });

  ModelNodeConfig node_config;
  node_config.model = model;
  node_config.optimizer.lr = number("lr");
  node_config.optimizer.warmup_steps = static_cast<std::int64_t>(number("warmup"));
  node_config.optimizer.decay_steps = static_cast<std::int64_t>(number("t_max"));
  node_config.optimizer.weight_decay = number("wd");
  node_config.optimizer.clip_norm = number("clip");
  node_config.sequences = sequences;
  node_config.context = context;
  node_config.devices = {way.device};
  node_config.library_operators = way.library_operators;
  const std::vector<std::int64_t> tokens = file.Integers("spes/tokens");
  const auto per_node = static_cast<std::ptrdiff_t>(tokens.size()) / nodes;
  for (NodeId n = 0; n < nodes; ++n) {
    std::vector<std::int32_t> own(tokens.begin() + n * per_node,
                                  tokens.begin() + (n + 1) * per_node);
    node_list.push_back(MakeModelNode(node_config, initial, allocation.blocks(n),
                                      std::make_unique<GoldenSource>(std::move(own), context)));
    peers.push_back(std::make_unique<Peer>(
        PeerConfig{n, "golden", WorldHash(initial),
                   [](std::int64_t) { return std::chrono::milliseconds(100); }},
        *node_list.back(), initial, runtime.endpoint(n), stop));
    runtime.Connect(n,
                    [peer = peers.back().get()](NodeId, const Message& m) { peer->OnMessage(m); });
  }
  for (const auto& peer : peers) peer->Start();
  loop.Run();
  ASSERT_TRUE(coordinator.finished());
}

class GoldenTrajectory : public ::testing::TestWithParam<Way> {};

TEST_P(GoldenTrajectory, LossesNormsAndWorldsOfFourRounds) {
  InitLibTorch();
  const GoldenFile file;
  Trajectory run;
  RunTrajectory(file, GetParam(), 2, run);

  const std::vector<double> log = file.Doubles("spes/log");  // [N, steps, 6]
  const auto steps = static_cast<std::size_t>(file.Number("spes", "steps"));
  ASSERT_EQ(run.recorder.steps.size() * 6, log.size());
  for (const analysis::StepRecord& r : run.recorder.steps) {
    const double* expected =
        &log[(static_cast<std::size_t>(r.node) * steps + static_cast<std::size_t>(r.step - 1)) * 6];
    const double actual[] = {r.ce, r.z, r.lb, r.rz, r.grad_norm, r.lr};
    for (int i = 0; i < 6; ++i) {
      EXPECT_NEAR(actual[i], expected[i], 1e-8 * std::abs(expected[i]))
          << "node " << r.node << " step " << r.step << " column " << i;
    }
  }
  ASSERT_EQ(run.worlds.size(), 5U);
  for (int round = 1; round <= 4; ++round) {
    SCOPED_TRACE(round);
    const World expected =
        file.ReadWorld("spes/round_" + std::to_string(round), run.worlds[round].table);
    golden::ExpectWorldsNear(run.worlds[round], expected, 1e-8);
  }
  EXPECT_EQ(run.recorder.Events("merge").size(), 2U);

  // The log's similarity to the nearest expert is that before merging.
  int compared = 0;
  for (const int step : {6, 12}) {
    const std::vector<double> cosine =
        file.Doubles("spes/merge_at_step_" + std::to_string(step) + "/w1_cosine");  // [L, E, E]
    for (const analysis::ExpertRecord& r : run.recorder.experts) {
      if (r.round != step / 3) continue;
      ++compared;
      const std::size_t row = static_cast<std::size_t>(r.layer * 8 + r.expert) * 8;
      EXPECT_NEAR(r.nearest_similarity, cosine[row + static_cast<std::size_t>(r.nearest)], 1e-9);
      for (std::size_t e = 0; e < 8; ++e) {
        if (e != static_cast<std::size_t>(r.expert)) {
          EXPECT_LE(cosine[row + e], r.nearest_similarity + 1e-9);
        }
      }
    }
  }
  EXPECT_EQ(compared, 2 * 2 * 8);
}

TEST_P(GoldenTrajectory, AnyNumberOfWorkersGivesTheSameBits) {
  InitLibTorch();
  const GoldenFile file;
  std::vector<std::string> hashes;
  for (const int workers : {1, 2, 5}) {
    Trajectory run;
    RunTrajectory(file, GetParam(), workers, run);
    hashes.push_back(WorldHash(run.worlds.rbegin()->second));
  }
  EXPECT_EQ(hashes[0], hashes[1]);
  EXPECT_EQ(hashes[0], hashes[2]);
}

INSTANTIATE_TEST_SUITE_P(Golden, GoldenTrajectory, ::testing::ValuesIn(Ways()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace spes::trainer
