// One transfer, through the kernel and through the packet level.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/network.h"
#include "tests/kernel/kernel_path.h"
#include "tests/kernel/kernel_transfer.h"

namespace spes::kernel {

struct Setting {
  PathSettings path;
  TransferSettings transfer;
};

// The machine has other things to do than to be a wire.
class TooBusy : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Streams that compete for a queue are a matter of luck: the kernel's runs of one setting differ,
// and a simulation is one such run. So there are several of each, and medians are compared.
struct Comparison {
  Setting setting;
  std::vector<TransferResult> kernel_runs;   // by rising time
  std::vector<sim::FlowResult> packet_runs;  // by rising time

  // The runs with the median of the times.
  const TransferResult& kernel() const { return kernel_runs[kernel_runs.size() / 2]; }
  const sim::FlowResult& packet() const { return packet_runs[packet_runs.size() / 2]; }
  double packet_seconds() const { return sim::ToSeconds(packet().end - packet().start); }
  double packet_goodput_bps() const {
    return static_cast<double>(packet().delivered_bytes) * 8 / packet_seconds();
  }
  // How much longer the packet level takes than the kernel, in percent.
  double difference_percent() const { return (packet_seconds() / kernel().seconds - 1) * 100; }
};

// The transfer at the packet level: the same bottleneck, round trip and queue, and nothing else
// that limits.
sim::FlowResult PacketTransfer(const Setting& setting);

// Runs the transfer `runs` times (an odd number) through a path of the kernel's, and as often
// through the packet level, with round trips that differ by half a percent from run to run around
// the one wanted. A run of the kernel in which anything but the bottleneck's queue lost packets, or
// more than a twentieth of the packets were late, is no measurement: it is done again, and after as
// many such runs as wanted ones, TooBusy says why. Throws what KernelPath and Transfer throw.
Comparison Compare(const Setting& setting, int runs);

}  // namespace spes::kernel
