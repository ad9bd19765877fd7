#include "trainer/eval/evaluator.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>
#include <vector>

#include "tests/golden/golden_file.h"
#include "trainer/data/keyed_random.h"
#include "trainer/model/initial_world.h"

namespace spes::trainer {
namespace {

const std::atomic<bool> kGo = false;

TEST(Evaluate, EqualsTheReferencesCrossEntropy) {
  const golden::GoldenFile file;
  for (const char* group : {"forward/olmoe", "forward/qwen3_dense", "forward/qwen3_moe"}) {
    const ModelConfig config = file.Model(group);
    const World world = file.ReadWorld(std::string(group) + "/param", MakeBlockTable(config));
    const auto ids = file.Integers(std::string(group) + "/tokens");
    // Sequence by sequence, and two batches of unequal size.
    const auto batch = [&](std::int64_t first, std::int64_t count) {
      return Batch{count, 12, {ids.begin() + first * 13, ids.begin() + (first + count) * 13}};
    };
    const EvalResult result = Evaluate(config, world, std::vector{batch(0, 1), batch(1, 2)}, kGo);
    EXPECT_EQ(result.tokens, 36);
    const double expected = file.Doubles(std::string(group) + "/ce")[0];
    EXPECT_NEAR(result.ce, expected, 1e-9 * expected) << group;
  }
}

TEST(Evaluate, RunsSideBySideAndStops) {
  const ModelConfig config{.vocabulary = 30,
                           .layers = 1,
                           .width = 16,
                           .heads = 2,
                           .kv_heads = 2,
                           .experts = 2,
                           .experts_per_token = 1,
                           .expert_width = 8};
  const World world = MakeInitialWorld(config, MakeBlockTable(config), 1);
  std::vector<Batch> batches(3, Batch{2, 9, {}});
  std::uint64_t position = 0;
  for (Batch& batch : batches) {
    for (int i = 0; i < 20; ++i) batch.tokens.push_back(static_cast<int>(Key(1, position++) % 30));
  }
  const EvalResult alone = Evaluate(config, world, batches, kGo);
  EXPECT_EQ(alone.tokens, 54);
  EXPECT_NEAR(alone.ce, std::log(30.0), 0.2);
  std::vector<EvalResult> results(3);
  std::vector<std::thread> threads;
  for (EvalResult& result : results) {
    threads.emplace_back([&] { result = Evaluate(config, world, batches, kGo); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const EvalResult& result : results) EXPECT_EQ(result.ce, alone.ce);
  const std::atomic<bool> stop = true;
  EXPECT_EQ(Evaluate(config, world, batches, stop).tokens, 0);
  EXPECT_EQ(Evaluate(config, world, {}, kGo).tokens, 0);
}

}  // namespace
}  // namespace spes::trainer
