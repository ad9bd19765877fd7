#include "app/memory_report.h"

#include <sys/resource.h>

namespace spes::app {

std::int64_t NodeBytes(const trainer::BlockTable& table, std::int64_t trainable_elements) {
  return trainer::ElementBytes(table.dtype()) * (table.TotalElements() + 3 * trainable_elements);
}

std::int64_t PeakResidentBytes() {
  rusage usage = {};
  if (getrusage(RUSAGE_SELF, &usage) != 0) return -1;
  return static_cast<std::int64_t>(usage.ru_maxrss) * 1024;  // Linux counts in KiB
}

void RecordMemory(const trainer::Allocation& allocation, const trainer::BlockTable& table,
                  analysis::Recorder& recorder) {
  const std::int64_t element = trainer::ElementBytes(table.dtype());
  for (int node = 0; node < allocation.nodes(); ++node) {
    const std::int64_t trainable = allocation.TrainableElements(node, table);
    recorder.Record(
        analysis::MemoryRecord{node, "parameters", element * table.TotalElements(), -1});
    recorder.Record(analysis::MemoryRecord{node, "gradients", element * trainable, -1});
    recorder.Record(analysis::MemoryRecord{node, "moments", 2 * element * trainable, -1});
  }
  recorder.Record(analysis::MemoryRecord{-2, "peak resident", -1, PeakResidentBytes()});
}

}  // namespace spes::app
