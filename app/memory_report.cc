#include "app/memory_report.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/sync_builder.h"
#include "trainer/devices.h"
#include "trainer/model/config.h"
#include "trainer/protocol/schedule.h"

namespace spes::app {

namespace {

using Kinds = std::vector<std::pair<std::string, std::int64_t>>;

// Of experts whose moments a node keeps for when they come back, at the end of the run.
std::int64_t AsideBytes(const scenarios::Scenario& scenario, const trainer::BlockTable& table,
                        std::int64_t trained) {
  const scenarios::RotationSection& rotate = scenario.sync.rotate;
  if (rotate.every == 0 || rotate.moments != trainer::RotatedMoments::kKept) return 0;
  const std::int64_t experts = table.TotalElements() - table.SharedElements();
  const std::int64_t own = std::max<std::int64_t>(0, trained - table.SharedElements());
  const std::int64_t moves =
      (trainer::Schedule(scenarios::BuildSchedule(scenario), table).rounds() - 1) / rotate.every;
  return trainer::ElementBytes(table.dtype()) * std::min(moves * own, experts - own);
}

// What a node of a real run keeps of `trained` elements out of all.
Kinds NodeKinds(const scenarios::Scenario& scenario, const trainer::BlockTable& table,
                std::int64_t trained) {
  const std::int64_t element = trainer::ElementBytes(table.dtype()), own = element * trained;
  Kinds kinds{{"parameters", element * table.TotalElements()}, {"gradients", own}};
  if (scenario.sync.method == scenarios::SyncMethod::kLocal) kinds.emplace_back("moments", 2 * own);
  const bool base = trainer::NeedsBase(scenario.sync.up) || trainer::NeedsBase(scenario.sync.down);
  if (base) kinds.emplace_back("published values", own);
  if (trainer::KeepsResidual(scenario.sync.up)) kinds.emplace_back("coding residuals", own);
  kinds.emplace_back("moments of experts trained before", 2 * AsideBytes(scenario, table, trained));
  std::erase_if(kinds, [](const auto& kind) { return kind.second == 0; });
  return kinds;
}

// What this process keeps, with all nodes in it.
Kinds ProcessKinds(const scenarios::Scenario& scenario, const trainer::Allocation& allocation,
                   const trainer::BlockTable& table, int workers, const ProcessStart& start) {
  const scenarios::SyncSection& sync = scenario.sync;
  const std::int64_t element = trainer::ElementBytes(table.dtype());
  const std::int64_t world = element * table.TotalElements();
  std::int64_t all = 0, largest = 0;  // trained by all nodes together, by the largest one
  std::int64_t aside = 0;
  for (int node = 0; node < allocation.nodes(); ++node) {
    const std::int64_t own = element * allocation.TrainableElements(node, table);
    all += own;
    largest = std::max(largest, own);
    aside += 2 * AsideBytes(scenario, table, own / element);
  }
  const bool gradients = sync.method == scenarios::SyncMethod::kDataParallel;
  const trainer::RotatedMoments rotated = sync.rotate.moments;
  const bool moments_travel =
      sync.moments == trainer::MomentsRule::kAveraged ||
      (sync.rotate.every > 0 && rotated == trainer::RotatedMoments::kHandedOver);
  std::int64_t state = 0;
  if (sync.shared.outer.nesterov) state += element * table.SharedElements();
  if (sync.experts.outer.nesterov) state += world - element * table.SharedElements();
  if (gradients) state += 2 * world;
  if (trainer::KeepsResidual(sync.down)) state += world;
  const std::int64_t rows = scenario.training.micro_sequences > 0
                                ? scenario.training.micro_sequences
                                : scenario.training.sequences;
  // What is computed on GPUs lies there. A node's further replicas have values of their own, and
  // every one of them its gradients and activations.
  const bool here = std::ranges::all_of(
      scenario.devices, [](const std::string& d) { return !trainer::ParseDevice(d).cuda; });
  const std::int64_t replicas = here ? scenario.nodes.devices_per_node : 0;
  const bool half = scenario.training.compute_dtype == trainer::ComputeType::kBFloat16;
  Kinds kinds{
      {"program", start.program_bytes},
      {"data", start.data_bytes},
      {"world", world},
      {"next world", world},
      {"nodes' own values", replicas * all},
      {"nodes' moments", gradients || !here ? 0 : 2 * all},
      {"moments of experts trained before", here ? aside : 0},
      {"bfloat16 copies of the world", here && half ? world / 2 : 0},
      {"uploads", moments_travel ? 3 * all : all},
      {"published moments", sync.moments == trainer::MomentsRule::kAveraged ? 2 * world
                            : moments_travel ? 2 * (world - element * table.SharedElements())
                                             : 0},
      {"gradients of workers", workers * (replicas > 1 ? replicas + 1 : replicas) * largest},
      {"activations of workers",
       workers * replicas * element *
           trainer::ActivationElements(scenario.model, rows * scenario.training.context)},
      {"coordinator's optimiser and residuals", state},
      {"nodes' coding residuals", trainer::KeepsResidual(sync.up) ? all : 0},
  };
  std::erase_if(kinds, [](const auto& kind) { return kind.second == 0; });
  return kinds;
}

}  // namespace

std::int64_t NodeBytes(const scenarios::Scenario& scenario, const trainer::BlockTable& table,
                       std::int64_t trainable_elements) {
  std::int64_t sum = 0;
  for (const auto& [kind, bytes] : NodeKinds(scenario, table, trainable_elements)) sum += bytes;
  return sum;
}

std::int64_t PeakResidentBytes() {
  rusage usage = {};
  if (getrusage(RUSAGE_SELF, &usage) != 0) return -1;
  return static_cast<std::int64_t>(usage.ru_maxrss) * 1024;  // Linux counts in KiB
}

std::int64_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  std::int64_t total = 0, resident = -1;
  if (!(file >> total >> resident)) return -1;
  return resident * sysconf(_SC_PAGESIZE);
}

void RecordMemory(const scenarios::Scenario& scenario, const trainer::Allocation& allocation,
                  const trainer::BlockTable& table, int workers, const ProcessStart& start,
                  analysis::Recorder& recorder) {
  for (int node = 0; node < allocation.nodes(); ++node) {
    const std::int64_t trained = allocation.TrainableElements(node, table);
    for (const auto& [kind, bytes] : NodeKinds(scenario, table, trained)) {
      recorder.Record(analysis::MemoryRecord{node, kind, bytes, -1});
    }
  }
  std::int64_t sum = 0;
  for (const auto& [kind, bytes] : ProcessKinds(scenario, allocation, table, workers, start)) {
    recorder.Record(analysis::MemoryRecord{-2, kind, bytes, -1});
    sum += bytes;
  }
  recorder.Record(analysis::MemoryRecord{-2, "peak resident", sum, PeakResidentBytes()});
}

}  // namespace spes::app
