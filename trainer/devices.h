// Names of the devices that models are computed on, and which of them a node has. No LibTorch here.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace spes::trainer {

// A device's name, taken apart.
struct DeviceName {
  bool cuda = false;  // otherwise the host's processor
  int index = 0;      // of several GPUs
};

// "cpu" or "cuda:N". Throws std::invalid_argument, one line, on anything else.
DeviceName ParseDevice(const std::string& name);

// The devices of one node: `per_node` of the list, which are taken in turn, node by node. Throws
// std::invalid_argument, one line, unless per_node divides their number.
std::vector<std::string> DevicesOfNode(std::span<const std::string> devices, int per_node,
                                       int node);

}  // namespace spes::trainer
