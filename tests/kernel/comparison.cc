#include "tests/kernel/comparison.h"

#include <algorithm>

#include "sim/ns3/packet_network.h"

namespace spes::kernel {
namespace {

constexpr double kMostLate = 0.05;  // share of packets

}  // namespace

sim::FlowResult PacketTransfer(const Setting& setting) {
  constexpr double kPlenty = 100e9;  // as fast as the kernel can write into the relay
  sim::Topology topology;
  topology.sites = {"there"};
  topology.paths = {{sim::SitePath{.rtt = setting.path.rtt, .bps = kPlenty}}};
  topology.hosts = {
      {.name = "sender", .link = {.down_bps = kPlenty, .up_bps = kPlenty}},
      {.name = "receiver",
       .link = {
           .down_bps = setting.path.bps, .up_bps = kPlenty, .queue_bdp = setting.path.queue_bdp}}};
  const auto network =
      sim::MakePacketNetwork(topology, {.congestion = setting.transfer.congestion});
  network->Prepare(0, 1, setting.transfer.streams);
  sim::FlowResult result;
  bool ended = false;
  network->Start(
      {.from = 0, .to = 1, .bytes = setting.transfer.bytes, .streams = setting.transfer.streams},
      [&](const sim::FlowResult& r) {
        result = r;
        ended = true;
      });
  while (!ended) network->AdvanceTo(sim::kNever);
  return result;
}

Comparison Compare(const Setting& setting, int runs) {
  Comparison comparison{.setting = setting, .kernel_runs = {}, .packet_runs = {}};
  for (int i = 0; i < runs; ++i) {
    Setting varied = setting;
    varied.path.rtt += setting.path.rtt * (i - runs / 2) / 200;
    comparison.packet_runs.push_back(PacketTransfer(varied));
  }
  std::ranges::sort(comparison.packet_runs, {}, &sim::FlowResult::end);
  int void_runs = 0;
  while (static_cast<int>(comparison.kernel_runs.size()) < runs) {
    const KernelPath path(setting.path);
    const TransferResult result = Transfer(path, setting.transfer);
    const double late = path.LateShare();
    if (result.drops.elsewhere == 0 && late <= kMostLate) {
      comparison.kernel_runs.push_back(result);
    } else if (++void_runs > runs) {
      throw TooBusy("too busy to measure: " + std::to_string(result.drops.elsewhere) +
                    " packets lost outside the bottleneck, " + std::to_string(100 * late) +
                    " % of them late in the relay");
    }
  }
  std::ranges::sort(comparison.kernel_runs, {}, &TransferResult::seconds);
  return comparison;
}

}  // namespace spes::kernel
