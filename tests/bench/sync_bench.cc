// The coordinator's work of a round: adding uploads, merging experts, checking and hashing.
#include <benchmark/benchmark.h>

#include <memory>
#include <utility>
#include <vector>

#include "trainer/model/initial_world.h"
#include "trainer/sync/allocation.h"
#include "trainer/sync/merge.h"
#include "trainer/sync/reduction.h"

namespace spes::trainer {
namespace {

// A model of the given width with 16 experts per layer: 128 is that of the main scenario.
struct Setting {
  explicit Setting(std::int64_t width) {
    model.width = width;
    model.expert_width = width;
    table = MakeBlockTable(model);
    world = MakeInitialWorld(model, table, 1);
  }
  ModelConfig model;
  std::shared_ptr<const BlockTable> table;
  World world;
};

void Merge(benchmark::State& state) {
  const Setting s(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(MergeExperts(s.world, 0.05, {}, 1));
  state.counters["bytes_per_s"] = benchmark::Counter(
      static_cast<double>(s.table->ExpertElements() * 16 * 4 * state.iterations()),
      benchmark::Counter::kIsRate);
}
BENCHMARK(Merge)->Arg(128)->Arg(512)->Unit(benchmark::kMillisecond);

// 16 uploads: the mean of the shared blocks, and each node's expert adopted.
void Reduce(benchmark::State& state) {
  const Setting s(state.range(0));
  constexpr int nodes = 16;
  const Allocation allocation =
      MakeAllocation({.kind = AllocationKind::kContiguous}, *s.table, nodes);
  std::vector<int> members(nodes);
  std::vector<std::vector<NodeBlock>> uploads(nodes);
  std::int64_t bytes = 0;
  for (int n = 0; n < nodes; ++n) {
    members[static_cast<std::size_t>(n)] = n;
    for (const BlockId id : allocation.blocks(n)) {
      uploads[static_cast<std::size_t>(n)].push_back(
          {id, s.world.blocks[static_cast<std::size_t>(id)].data});
      bytes += s.table->Bytes(id);
    }
  }
  for (auto _ : state) {
    Reduction reduction({}, s.world, members);
    for (int n = 0; n < nodes; ++n) reduction.Add(n, uploads[static_cast<std::size_t>(n)], 1);
    benchmark::DoNotOptimize(reduction.Finish(1));
  }
  state.counters["bytes_per_s"] = benchmark::Counter(
      static_cast<double>(bytes * state.iterations()), benchmark::Counter::kIsRate);
}
BENCHMARK(Reduce)->Arg(128)->Arg(512)->Unit(benchmark::kMillisecond);

void Hash(benchmark::State& state) {
  const Setting s(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(WorldHash(s.world));
  state.counters["bytes_per_s"] =
      benchmark::Counter(static_cast<double>(s.table->TotalElements() * 4 * state.iterations()),
                         benchmark::Counter::kIsRate);
}
BENCHMARK(Hash)->Arg(512)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace spes::trainer
