// A PeerStore that lives as long as the process: for simulation and tests.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trainer/protocol/peer_store.h"

namespace spes::trainer {

// Keeps the two newest rounds; writing a round forgets the states of later ones, as NodeStore does.
class MemoryPeerStore final : public PeerStore {
 public:
  void Write(std::int32_t round, const StateBytes& state) override {
    states_.erase(states_.begin(), states_.lower_bound(round));  // those of later rounds
    states_[round] = state.Text();
    while (states_.size() > 2) states_.erase(std::prev(states_.end()));
  }

  std::vector<std::int32_t> Rounds() const override {
    std::vector<std::int32_t> rounds;
    for (const auto& [round, state] : states_) rounds.push_back(round);
    return rounds;
  }

  std::optional<std::string> Read(std::int32_t round) const override {
    const auto found = states_.find(round);
    return found == states_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  std::map<std::int32_t, std::string, std::greater<>> states_;  // newest first
};

}  // namespace spes::trainer
