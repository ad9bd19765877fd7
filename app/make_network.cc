#include "app/make_network.h"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

#include "scenarios/topology_builder.h"
#include "sim/background.h"
#include "sim/fluid/fluid_network.h"
#ifdef SPES_NS3
#include "sim/ns3/packet_network.h"
#endif

namespace spes::app {

namespace {

std::unique_ptr<sim::Network> MakeLevel(scenarios::Fidelity fidelity, const sim::Topology& topology,
                                        const sim::TcpConfig& tcp) {
  using scenarios::Fidelity;
  switch (fidelity) {
    case Fidelity::kIdeal:
      return sim::MakeIdealNetwork(topology, tcp);
    case Fidelity::kFluid:
      return sim::MakeFluidNetwork(topology, tcp);
#ifdef SPES_NS3
    case Fidelity::kHybrid:
      return sim::MakeHybridNetwork(topology, tcp);
    case Fidelity::kCoarse:
      return sim::MakeCoarseNetwork(topology, tcp);
    case Fidelity::kPacket:
      return sim::MakePacketNetwork(topology, tcp);
#else
    default:
      break;
#endif
  }
  throw std::invalid_argument(
      "network.fidelity: packet, coarse and hybrid need ns-3, which this program was built "
      "without; use fluid or ideal, or build with -DSPES_NS3=ON");
}

}  // namespace

sim::TcpConfig RunTcp(const scenarios::Scenario& scenario) {
  sim::TcpConfig tcp = scenario.network.tcp;
  // Losses follow the run's seed, and can be drawn anew on their own.
  tcp.seed = scenario.seed * 1'000'003 + scenario.network.tcp.seed;
  return tcp;
}

std::unique_ptr<sim::Network> MakeNetwork(const scenarios::Scenario& scenario,
                                          const sim::Topology& topology) {
  const sim::TcpConfig tcp = RunTcp(scenario);
  std::unique_ptr<sim::Network> network = MakeLevel(scenario.network.fidelity, topology, tcp);
  const std::vector<sim::BackgroundFlow> others = scenarios::BuildBackground(scenario);
  if (others.empty()) return network;
  return sim::MakeBackground(std::move(network), others, tcp.seed);
}

}  // namespace spes::app
