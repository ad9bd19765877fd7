// The levels of fidelity under test, and small topologies for them.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/network.h"
#include "sim/topology.h"

namespace spes::sim {

struct Level {
  std::string name;
  std::function<std::unique_ptr<Network>(const Topology&, const TcpConfig&)> make;
  bool packets = false;  // TCP, headers, losses
};

// Every level this build has; `packet` only with ns-3.
std::vector<Level> Levels();

std::string LevelName(const testing::TestParamInfo<Level>& info);

// `n` hosts with equal links at one site; the path inside the site is wide and takes no time, so
// that the round trip between two hosts is twice the link's.
Topology Star(int n, const AccessLink& link);

// Opens connections between all hosts, so that no flow pays a handshake.
void PrepareAll(Network& network, const Topology& topology);

// Starts the flow and advances until it has ended.
FlowResult Transfer(Network& network, const Flow& flow);

}  // namespace spes::sim
