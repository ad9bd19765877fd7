// What a round's end costs the coordinator on disk.
#include <benchmark/benchmark.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "trainer/checkpoint/journal.h"
#include "trainer/model/initial_world.h"

namespace spes::trainer {
namespace {

// A world of about 125 MB, and as much for each of the moments and the velocity: 500 MB in all.
CoordinatorState State() {
  ModelConfig model;
  model.width = model.expert_width = 384;
  CoordinatorState state;
  const auto table = MakeBlockTable(model);
  state.world = MakeInitialWorld(model, table, 1);
  for (const PublishedBlock& block : state.world.blocks) {
    const auto copy = [&] { return std::make_shared<Buffer>(block.data->Clone()); };
    state.moments.push_back(std::make_shared<const BlockMoments>(BlockMoments{copy(), copy(), 1}));
    state.updater.velocity.push_back(copy());
  }
  return state;
}

// The most memory that the process has had since `ResetPeak`.
void ResetPeak() { std::ofstream("/proc/self/clear_refs") << 5; }
double PeakMegabytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stod(line.substr(6)) * 1.024e-3;
  }
  throw std::runtime_error("no VmHWM in /proc/self/status");
}

class JournalBench : public benchmark::Fixture {
 public:
  void SetUp(benchmark::State&) override {
    std::string name = (std::filesystem::temp_directory_path() / "spes-journal-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    folder_ = name;
    state_ = State();
    const std::int64_t tensors = state_.world.table->TotalElements() * 4;
    bytes_ = ElementBytes(state_.world.table->dtype()) * tensors;
  }
  void TearDown(benchmark::State&) override {
    state_ = {};
    std::filesystem::remove_all(folder_);
  }

 protected:
  void Count(benchmark::State& state, double peak_before) const {
    state.counters["state_mb"] = static_cast<double>(bytes_) / 1e6;
    state.counters["extra_peak_mb"] = PeakMegabytes() - peak_before;
    state.SetBytesProcessed(bytes_ * static_cast<std::int64_t>(state.iterations()));
  }
  std::string folder_;
  CoordinatorState state_;
  std::int64_t bytes_ = 0;
};

// Synced to the disk each time.
BENCHMARK_DEFINE_F(JournalBench, Write)(benchmark::State& state) {
  Journal journal(folder_);
  ResetPeak();
  const double peak = PeakMegabytes();
  for (auto _ : state) {
    ++state_.round;
    journal.Write(state_);
  }
  Count(state, peak);
}
BENCHMARK_REGISTER_F(JournalBench, Write)->Unit(benchmark::kMillisecond)->UseRealTime();

// As far as it is still in memory; extra_peak_mb holds the state that is read.
BENCHMARK_DEFINE_F(JournalBench, Newest)(benchmark::State& state) {
  Journal journal(folder_);
  journal.Write(state_);
  ResetPeak();
  const double peak = PeakMegabytes();
  std::vector<std::string> warnings;
  for (auto _ : state) {
    benchmark::DoNotOptimize(journal.Newest(state_.world.table, warnings));
  }
  Count(state, peak);
}
BENCHMARK_REGISTER_F(JournalBench, Newest)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace spes::trainer
