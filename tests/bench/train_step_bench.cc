// One training step of one node on one core: tokens per second, and its share of the speed of a
// large matrix product.
#include <benchmark/benchmark.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trainer/data/keyed_random.h"
#include "trainer/model/gemm.h"
#include "trainer/model/initial_world.h"
#include "trainer/model_node.h"
#include "trainer/sync/buffer.h"

namespace spes::trainer {
namespace {

class RandomTokens final : public BatchSource {
 public:
  RandomTokens(std::int64_t vocabulary, std::int64_t context)
      : vocabulary_(vocabulary), context_(context) {}
  void Next(std::int64_t sequences, Batch& out) override {
    out.sequences = sequences;
    out.context = context_;
    out.tokens.resize(static_cast<std::size_t>(sequences * (context_ + 1)));
    for (std::int32_t& token : out.tokens) {
      token = static_cast<std::int32_t>(Mix(counter_++) % static_cast<std::uint64_t>(vocabulary_));
    }
  }
  std::string Position() const override { return std::to_string(counter_); }
  void Seek(const std::string& position) override { counter_ = std::stoull(position); }

 private:
  std::int64_t vocabulary_, context_;
  std::uint64_t counter_ = 0;
};

// This thread's processor time: other programs on the machine do not count.
double ThreadSeconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Floating-point operations per second of a float32 product of 1024 × 1024 matrices on one core,
// the best of several tries.
double MatrixProductPeak() {
  constexpr std::int64_t n = 1024;
  const std::int64_t bytes = n * n * std::int64_t{sizeof(float)};
  Buffer a(bytes), b(bytes), c(bytes);
  std::fill(a.as<float>().begin(), a.as<float>().end(), 1.0f);
  std::fill(b.as<float>().begin(), b.as<float>().end(), 1.0f);
  double best = 0;
  for (int i = 0; i < 10; ++i) {
    const double start = ThreadSeconds();
    Gemm(Op::kPlain, Op::kPlain, n, n, n, 1.0f, a.as<float>().data(), n, b.as<float>().data(), n,
         0.0f, c.as<float>().data(), n);
    best = std::max(best, 2.0 * n * n * n / (ThreadSeconds() - start));
  }
  return best;
}

// Every node owns expert 0 of each layer and all shared blocks.
std::vector<BlockId> OneExpertPerLayer(const BlockTable& table) {
  std::vector<BlockId> ids;
  for (BlockId id = 0; id < table.size(); ++id) {
    if (table[id].expert <= 0) ids.push_back(id);
  }
  return ids;
}

void TrainStep(benchmark::State& state, int layers, std::int64_t expert_width) {
  InitLibTorch();
  ModelNodeConfig config;
  config.model.layers = layers;
  config.model.expert_width = expert_width;
  config.optimizer.decay_steps = 1000000;
  const auto table = MakeBlockTable(config.model);
  const World world = MakeInitialWorld(config.model, table, 1);
  const std::unique_ptr<Node> node =
      MakeModelNode(config, world, OneExpertPerLayer(*table),
                    std::make_unique<RandomTokens>(config.model.vocabulary, config.context));
  const std::atomic<bool> stop = false;
  std::int64_t step = 1;
  node->TrainSteps(step++, 1, stop);
  static const double peak = MatrixProductPeak();
  const double start = ThreadSeconds();
  while (state.KeepRunning()) benchmark::DoNotOptimize(node->TrainSteps(step++, 1, stop));
  const double seconds = ThreadSeconds() - start;
  const double tokens = static_cast<double>(config.sequences * config.context) *
                        static_cast<double>(state.iterations());
  const double flops =
      tokens * TrainingFlopsPerToken(config.model, config.context, 1.0 / config.model.experts);
  state.counters["tokens_per_s"] = tokens / seconds;
  state.counters["flops"] = flops / seconds;
  state.counters["matmul_peak_flops"] = peak;
  state.counters["share_of_peak"] = flops / seconds / peak;
}

BENCHMARK_CAPTURE(TrainStep, L4_D128_F128_E16_K2, 4, 128)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(TrainStep, L3_D128_F64_E16_K2, 3, 64)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace spes::trainer
