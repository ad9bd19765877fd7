// A whole run under random faults, all from one number, and what must hold of it.
#pragma once

#include <cstdint>
#include <map>
#include <ostream>
#include <string>
#include <vector>

namespace spes::trainer {

struct ChaosOutcome {
  std::vector<std::string> violations;
  std::map<std::string, int> events;  // by kind
  std::int32_t rounds = 0;
  bool same_required = false;  // the world must be that of the undisturbed run
};

// Runs the settings and faults of `seed`, once without faults and once with. `trace`: where each
// message and event goes; null: nowhere.
ChaosOutcome RunChaos(std::uint64_t seed, std::ostream* trace = nullptr);

}  // namespace spes::trainer
