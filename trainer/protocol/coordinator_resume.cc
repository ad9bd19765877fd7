// What a coordinator writes down after each round, and how it goes on from that.
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "trainer/protocol/coordinator.h"

namespace spes::trainer {

// All but what the reduction at hand is changing.
CoordinatorState Coordinator::StateNow() const {
  CoordinatorState state;
  state.scenario_hash = config_.scenario_hash;
  state.run = config_.run;
  state.round = committed_round_;
  state.step = committed_step_;
  state.now_s = NowSeconds();
  state.up_bytes = up_so_far_;
  state.down_bytes = down_so_far_.all;
  state.initial_hash = initial_hash_;
  state.world = published_.world;
  state.moments = published_.moments;
  for (const Member& each : members_) {
    state.nodes.push_back(each.standing);
    state.nodes.back().lost = each.state == MemberState::kLost;
  }
  for (int node = 0; node < configured_.nodes(); ++node) {
    state.allocation.push_back(configured_.blocks(node));
  }
  state.load = log_.load();
  state.delivered = log_.delivered();
  state.updater = updater_.State();
  state.norms = trust_.State();
  return state;
}

// What the reduction has changed; on its thread.
void Coordinator::AddUpdate(const WorldUpdate& update, CoordinatorState& state) {
  state.round = order_.span.round;
  state.step = order_.span.last_step();
  state.world = update.world;
  for (std::size_t i = 0; i < update.source.size(); ++i) {
    if (update.contributed[i]) state.delivered[i] = state.round;
    if (update.world.blocks[i].version == state.round) state.moments[i] = update.moments[i];
  }
  state.updater = updater_.State();
}

void Coordinator::Resume(CoordinatorState state) {
  const auto require = [](bool holds, const std::string& what) {
    if (!holds) throw std::invalid_argument(fmt::format("the state to resume from: {}", what));
  };
  require(state.scenario_hash == config_.scenario_hash, "it is of another scenario");
  require(state.world.table == table_, "its world is of another model");
  require(state.round >= 0 && state.round <= schedule_.rounds(), "it has more rounds than the run");
  require(state.allocation.size() == members_.size() && state.nodes.size() == members_.size(),
          "it has another number of nodes");
  require(state.moments.size() == published_.moments.size(), "its moments are of another model");
  resumed_ = state.round > 0;  // else nobody may have come yet
  config_.run = state.run;
  committed_round_ = state.round;
  committed_step_ = state.step;
  up_so_far_ = state.up_bytes;
  down_so_far_.all = state.down_bytes;
  initial_hash_ = std::move(state.initial_hash);
  published_.world = std::move(state.world);
  published_.moments = std::move(state.moments);
  std::vector<std::vector<int>> trainers(published_.world.blocks.size());
  for (std::size_t node = 0; node < state.allocation.size(); ++node) {
    for (const BlockId id : state.allocation[node]) {
      require(id >= 0 && id < table_->size(), "its allocation names a block that is not there");
      trainers[static_cast<std::size_t>(id)].push_back(static_cast<int>(node));
    }
  }
  configured_ = allocation_ = Allocation(first_allocation_.nodes(), std::move(trainers));
  for (std::size_t node = 0; node < members_.size(); ++node) {
    NodeStanding& standing = members_[node].standing = std::move(state.nodes[node]);
    // What is known of its last result: that of the last round is there if it is of that.
    members_[node].counted = state.round;
    if (standing.lost || !standing.quarantine.empty()) members_[node].state = MemberState::kLost;
    if (config_.on_quarantine && !standing.quarantine.empty()) {
      config_.on_quarantine(static_cast<NodeId>(node), standing.quarantine);
    }
  }
  trust_.Restore(state.norms);
  log_.Restore(std::move(state.load), std::move(state.delivered));
  updater_.Restore(std::move(state.updater));
  if (!AllStepsDone()) {
    require(std::ranges::any_of(
                members_, [](const Member& each) { return each.standing.quarantine.empty(); }),
            fmt::format("after round {} every node is in quarantine, and nobody is left to go on "
                        "with; begin a new run",
                        committed_round_));
    return;
  }
  // All that is left is to say so to those who come for it.
  runtime_.After(config_.patience, [this] {
    begun_ = true;
    EndRun(log_.record);
  });
}

}  // namespace spes::trainer
