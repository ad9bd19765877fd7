#include "trainer/model_node.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <thread>
#include <utility>

#include "tests/golden/golden_file.h"
#include "tests/trainer/small_model.h"

namespace spes::trainer {
namespace {

// The tokens of one node of the reference trajectory, [steps, B, T + 1].
class GoldenTokens final : public BatchSource {
 public:
  GoldenTokens(std::vector<std::int64_t> tokens, std::int64_t context)
      : tokens_(std::move(tokens)), context_(context) {}
  void Next(std::int64_t sequences, Batch& out) override {
    const std::int64_t count = sequences * (context_ + 1);
    out = {sequences, context_, {tokens_.begin() + at_, tokens_.begin() + at_ + count}};
    at_ += count;
  }
  std::string Position() const override { return ""; }
  void Seek(const std::string&) override {}

 private:
  std::vector<std::int64_t> tokens_;
  std::int64_t context_, at_ = 0;
};

std::string Bytes(const Node& node) {
  std::string bytes;
  for (const NodeBlock& block : ReadTrainable(node)) {
    bytes.append(reinterpret_cast<const char*>(block.data->data()),
                 static_cast<std::size_t>(block.data->bytes()));
  }
  return bytes;
}

TEST(ModelNode, FollowsTheReferenceUpToTheFirstRound) {
  InitLibTorch();
  const golden::GoldenFile file;
  const ModelConfig model = file.Model("forward/olmoe");
  const auto table = MakeBlockTable(model);
  const World world = file.ReadWorld("spes/init", table);
  const std::int64_t B = file.Integer("spes", "B"), T = file.Integer("spes", "T");
  const std::int64_t nodes = file.Integer("spes", "N"), steps = file.Integer("spes", "steps");
  const ModelNodeConfig config{.model = model,
                               .optimizer = {.lr = file.Number("spes", "lr"),
                                             .warmup_steps = file.Integer("spes", "warmup"),
                                             .decay_steps = file.Integer("spes", "t_max"),
                                             .weight_decay = file.Number("spes", "wd"),
                                             .clip_norm = file.Number("spes", "clip")},
                               .sequences = B,
                               .context = T};
  const std::vector<std::int64_t> tokens = file.Integers("spes/tokens");
  const std::vector<double> log = file.Doubles("spes/log");
  const std::int64_t per_node = steps * B * (T + 1);
  for (std::int64_t n = 0; n < nodes; ++n) {
    const auto first = tokens.begin() + n * per_node;
    const auto node =
        MakeModelNode(config, world, SharedAndExperts(*table, static_cast<int>(2 * n), 2),
                      std::make_unique<GoldenTokens>(std::vector(first, first + per_node), T));
    const TrainResult result = node->TrainSteps(1, 3, kGo);
    ASSERT_EQ(result.steps.size(), 3u);
    for (std::int64_t s = 0; s < 3; ++s) {
      const analysis::StepRecord& r = result.steps[static_cast<std::size_t>(s)];
      const double actual[] = {r.ce, r.z, r.lb, r.rz, r.grad_norm, r.lr};
      for (std::int64_t i = 0; i < 6; ++i) {
        const double expected = log[static_cast<std::size_t>((n * steps + s) * 6 + i)];
        EXPECT_NEAR(actual[i], expected, 1e-9 * expected) << n << " " << s << " " << i;
      }
    }
  }
}

TEST(ModelNode, GivesTheSameBitsOnAnyThread) {
  const SmallModel setup;
  std::vector<std::string> in_turn, side_by_side(4);
  for (int n = 0; n < 4; ++n) {
    const auto node = setup.Make(n);
    node->TrainSteps(1, 5, kGo);
    in_turn.push_back(Bytes(*node));
  }
  std::vector<std::thread> threads;
  for (int n = 0; n < 4; ++n) {
    threads.emplace_back([&, n] {
      const auto node = setup.Make(n);
      node->TrainSteps(1, 2, kGo);
      std::thread([&] { node->TrainSteps(3, 3, kGo); }).join();  // goes on elsewhere
      side_by_side[static_cast<std::size_t>(n)] = Bytes(*node);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(in_turn, side_by_side);
  EXPECT_NE(in_turn[0], in_turn[1]);
}

TEST(ModelNode, SharesFrozenBlocksAndNeverMovesThem) {
  const SmallModel setup;
  const std::string before = WorldHash(setup.world);
  const auto a = setup.Make(0), b = setup.Make(1);
  const auto owners = [&](BlockId id) {
    return setup.world.blocks[static_cast<std::size_t>(id)].data.use_count();
  };
  EXPECT_EQ(owners(setup.world.table->Expert(1, 3).value()), 3);  // the world and both nodes
  EXPECT_EQ(owners(setup.world.table->Expert(1, 0).value()), 2);  // a has a copy of its own
  EXPECT_EQ(owners(0), 1);
  const std::string start = Bytes(*a);
  a->TrainSteps(1, 2, kGo);
  b->TrainSteps(1, 2, kGo);
  EXPECT_EQ(WorldHash(setup.world), before);
  EXPECT_NE(Bytes(*a), start);
}

TEST(ModelNode, GradientsReachEveryTrainableBlock) {
  const SmallModel setup([](ModelNodeConfig& c) { c.optimizer.weight_decay = 0; });
  const auto node = setup.Make(2);
  node->TrainSteps(1, 1, kGo);
  for (const NodeBlock& block : ReadTrainable(*node)) {
    const Buffer& start = *setup.world.blocks[static_cast<std::size_t>(block.id)].data;
    EXPECT_NE(
        std::memcmp(block.data->data(), start.data(), static_cast<std::size_t>(start.bytes())), 0)
        << (*setup.world.table)[block.id].parts[0].name;
  }
}

TEST(ModelNode, AppliesPublishedValues) {
  const SmallModel setup;
  const auto node = setup.Make(0), other = setup.Make(1, 1, 10);
  other->TrainSteps(1, 2, kGo);
  const std::vector<NodeBlock> published = ReadTrainable(*other);
  node->Apply(published);
  for (const NodeBlock& block : ReadTrainable(*node)) {
    const auto from = std::find_if(published.begin(), published.end(),
                                   [&](const NodeBlock& p) { return p.id == block.id; });
    if (from == published.end()) continue;  // its own expert
    EXPECT_NE(from->data, block.data);      // a copy
    EXPECT_EQ(std::memcmp(from->data->data(), block.data->data(),
                          static_cast<std::size_t>(block.data->bytes())),
              0);
  }
  // The other's expert is referred to.
  EXPECT_EQ(published.back().data.use_count() > 1 ||
                std::any_of(published.begin(), published.end(),
                            [](const NodeBlock& p) { return p.data.use_count() > 1; }),
            true);
  const NodeBlock bad{0, std::make_shared<const Buffer>(64)};
  EXPECT_THROW(node->Apply(std::vector{bad}), std::invalid_argument);
}

TEST(ModelNode, AccumulatesGradientsOverMicrobatches) {
  const auto train = [](std::int64_t micro) {
    const SmallModel setup([&](ModelNodeConfig& c) {
      c.model.dtype = DType::kFloat64;
      c.model.load_balance_loss = 0;  // a product of two means: not that of the microbatches
      c.micro_sequences = micro;
    });
    const auto node = setup.Make(0);
    const TrainResult result = node->TrainSteps(1, 3, kGo);
    return std::pair(result.steps, ReadTrainable(*node));
  };
  const auto [whole, whole_blocks] = train(0);
  const auto [parts, part_blocks] = train(1);
  for (std::size_t s = 0; s < 3; ++s) {
    EXPECT_NEAR(whole[s].ce, parts[s].ce, 1e-11);
    EXPECT_NEAR(whole[s].rz, parts[s].rz, 1e-11);
    EXPECT_NEAR(whole[s].grad_norm, parts[s].grad_norm, 1e-10);
    EXPECT_EQ(parts[s].tokens, 64);
  }
  for (std::size_t i = 0; i < whole_blocks.size(); ++i) {
    const auto a = whole_blocks[i].data->as<double>(), b = part_blocks[i].data->as<double>();
    for (std::size_t k = 0; k < a.size(); ++k) ASSERT_NEAR(a[k], b[k], 1e-8);
  }
}

TEST(ModelNode, CountsRoutedSlots) {
  const SmallModel setup;
  const TrainResult result = setup.Make(0)->TrainSteps(1, 3, kGo);
  EXPECT_EQ(result.routing.tokens, 3 * 64);
  ASSERT_EQ(result.routing.routed.size(), 2u);
  for (std::size_t l = 0; l < 2; ++l) {
    std::int64_t slots = 0;
    for (const std::int64_t n : result.routing.routed[l]) slots += n;
    EXPECT_EQ(slots, 3 * 64 * 2);
    EXPECT_GT(result.routing.entropy_sum[l], 0);
    EXPECT_LE(result.routing.entropy_sum[l], 3 * 64 * std::log(4.0) * (1 + 1e-6));
  }
  RoutingCounts sum;
  sum.Add(result.routing);
  sum.Add(result.routing);
  EXPECT_EQ(sum.tokens, 6 * 64);
  EXPECT_EQ(sum.routed[1][2], 2 * result.routing.routed[1][2]);
}

TEST(ModelNode, LearnsWithEveryShape) {
  struct Shape {
    int experts, per_token, owned;
    std::int64_t context;
  };
  for (const Shape& s : {Shape{4, 4, 2, 16}, Shape{1, 1, 1, 16}, Shape{4, 2, 1, 1},
                         Shape{0, 2, 0, 16}, Shape{2, 1, 2, 100}}) {
    const SmallModel setup([&](ModelNodeConfig& c) {
      c.model.experts = s.experts;
      c.model.experts_per_token = s.per_token;
      c.context = s.context;
      c.sequences = 2;
      c.optimizer.lr = 1e-2;
    });
    // The same batch again and again.
    const auto node = setup.Make(0, s.owned);
    double first = 0, last = 0;
    for (int step = 1; step <= 8; ++step) {
      const auto again =
          MakeModelNode(setup.config, setup.world, node->trainable(),
                        std::make_unique<KeyedTokens>(9, setup.config.model.vocabulary, s.context));
      again->Apply(ReadTrainable(*node));
      last = again->TrainSteps(step, 1, kGo).steps[0].ce;
      node->Apply(ReadTrainable(*again));
      if (step == 1) first = last;
    }
    EXPECT_TRUE(std::isfinite(last));
    EXPECT_LT(last, first - 0.1) << s.experts << " experts, context " << s.context;
  }
}

TEST(ModelNode, ContinuesFromASavedState) {
  const SmallModel setup;
  const auto a = setup.Make(1);
  a->TrainSteps(1, 3, kGo);
  const std::string state = a->Save().Text();
  a->TrainSteps(4, 2, kGo);
  const auto b = setup.Make(1);
  b->Load(state);
  b->TrainSteps(4, 2, kGo);
  EXPECT_EQ(Bytes(*a), Bytes(*b));
  EXPECT_EQ(a->Save().Text(), b->Save().Text());
  EXPECT_NE(a->Save().Text(), state);
}

// A copy would be values and moments once more in memory, just when a round's result is there too.
TEST(ModelNode, ASavedStateLiesWhereTheNodeHasIt) {
  const SmallModel setup;
  const auto node = setup.Make(1);
  node->TrainSteps(1, 1, kGo);
  const StateBytes one = node->Save(), other = node->Save();
  const auto places = [](const StateBytes& state) {
    std::vector<const std::byte*> all;
    state.ForEach([&all](std::span<const std::byte> piece) {
      if (piece.size() > 100) all.push_back(piece.data());
    });
    return all;
  };
  EXPECT_EQ(places(one), places(other));
  EXPECT_GE(places(one).size(), 2 * node->trainable().size());
}

TEST(ModelNode, RefusesStatesThatAreNotItsOwn) {
  const SmallModel setup;
  const auto node = setup.Make(1);
  node->TrainSteps(1, 1, kGo);
  const std::string state = node->Save().Text();
  const auto other = setup.Make(2);
  const std::string before = other->Save().Text();
  EXPECT_THROW(other->Load(state), std::invalid_argument);
  EXPECT_THROW(other->Load(""), std::invalid_argument);
  EXPECT_THROW(other->Load("something else entirely, long enough"), std::invalid_argument);
  EXPECT_THROW(other->Load(before.substr(0, before.size() / 2)), std::invalid_argument);
  std::string damaged = before;
  damaged[damaged.size() / 2] ^= 1;
  EXPECT_THROW(other->Load(damaged), std::invalid_argument);
  EXPECT_EQ(other->Save().Text(), before);
}

TEST(ModelNode, ForgetsItsMoments) {
  const SmallModel setup;
  const auto a = setup.Make(0);
  a->TrainSteps(1, 3, kGo);
  a->ResetOptimizer(a->trainable());
  const auto b = setup.Make(0);
  b->TrainSteps(1, 3, kGo);  // brings the data to the same place
  b->ResetOptimizer(b->trainable());
  const auto fresh = setup.Make(0);
  fresh->Apply(ReadTrainable(*a));
  auto skip = a->Save().Text();
  fresh->Load(skip);
  a->TrainSteps(4, 1, kGo);
  fresh->TrainSteps(4, 1, kGo);
  b->TrainSteps(4, 1, kGo);
  EXPECT_EQ(Bytes(*a), Bytes(*b));
  EXPECT_EQ(Bytes(*a), Bytes(*fresh));
  const auto c = setup.Make(0);
  c->TrainSteps(1, 4, kGo);
  EXPECT_NE(Bytes(*a), Bytes(*c));
}

TEST(ModelNode, StopsBetweenSteps) {
  const SmallModel setup;
  const std::atomic<bool> stop = true;
  EXPECT_TRUE(setup.Make(0)->TrainSteps(1, 5, stop).steps.empty());
}

TEST(ModelNode, RefusesSettingsThatDoNotFit) {
  const auto fails = [](const std::function<void(ModelNodeConfig&)>& change,
                        const std::string& message) {
    SmallModel setup;
    change(setup.config);
    try {
      setup.Make(0);
      ADD_FAILURE() << "no error: " << message;
    } catch (const std::invalid_argument& error) {
      EXPECT_EQ(error.what(), message);
    }
  };
  fails([](ModelNodeConfig& c) { c.micro_sequences = 3; },
        "micro_sequences is 3; it must divide sequences, which is 4");
  fails([](ModelNodeConfig& c) { c.sequences = 0; }, "sequences is 0; at least 1");
  fails([](ModelNodeConfig& c) { c.context = 0; }, "context is 0; at least 1");
  fails([](ModelNodeConfig& c) { c.optimizer.decay_steps = 0; },
        "optimizer: decay_steps is 0; it must be positive here");
  fails([](ModelNodeConfig& c) { c.devices = {}; }, "devices is empty; cpu is always there");
  fails([](ModelNodeConfig& c) { c.devices = {"gpu"}; },
        "'gpu' is no device; there are cpu, cuda:0, cuda:1 …");
  const SmallModel setup;
  const auto source = [] { return std::make_unique<KeyedTokens>(1, 40, 16); };
  EXPECT_THROW(MakeModelNode(setup.config, setup.world, {}, source()), std::invalid_argument);
  EXPECT_THROW(MakeModelNode(setup.config, setup.world, {2, 1}, source()), std::invalid_argument);
  EXPECT_THROW(MakeModelNode(setup.config, setup.world, {1000}, source()), std::invalid_argument);
}

}  // namespace
}  // namespace spes::trainer
