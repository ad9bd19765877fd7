#include "app/tcp_node.h"

#include <fmt/format.h>

#include <atomic>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "analysis/version.h"
#include "app/durable_run.h"
#include "app/interrupt.h"
#include "app/make_node.h"
#include "app/prepare.h"
#include "app/real_peer.h"
#include "app/terminal.h"
#include "scenarios/scenario_hash.h"
#include "scenarios/sync_builder.h"
#include "scenarios/tcp_builder.h"
#include "scenarios/topology_builder.h"
#include "trainer/model/cuda_library.h"
#include "trainer/model_node.h"
#include "trainer/protocol/wire_size.h"
#include "trainer/runtime/compute_pool.h"
#include "trainer/runtime/tcp/tcp_runtime.h"

namespace spes::app {

namespace {

constexpr trainer::Seconds kFarewell{10};  // for what is still on its way at the end

// A line, and an event, whenever the node does something else, and whenever a try to reach the
// coordinator fails for another reason than the last.
class NodeDisplay {
 public:
  NodeDisplay(bool quiet, EventLog& events) : quiet_(quiet), events_(events) {}

  void Waiting(const std::string& why) {
    if (why == waiting_) return;
    waiting_ = why;
    Say("waiting", fmt::format("waiting for the coordinator: {}", why));
  }
  void Show(int node, const trainer::Peer& peer, const trainer::TcpNodeStatus& status) {
    events_.SetRound(peer.round());
    if (peer.state() != state_ || peer.round() != round_) {
      state_ = peer.state();
      round_ = peer.round();
      events_.Say(EventLevel::kInfo, "state", std::string(Name(peer.state())));
    }
    if (quiet_) return;
    const std::string text =
        fmt::format("node {}: round {}, {}{}", node, peer.round(), Name(peer.state()),
                    status.connected ? std::string() : std::string(", without a connection"));
    if (line_.terminal()) {
      line_.Show(status.transfer_bytes == 0
                     ? text
                     : fmt::format("{} ({} of {} KiB)", text, status.transfer_done >> 10,
                                   status.transfer_bytes >> 10));
    } else if (text != shown_) {
      line_.Print(text);
    }
    shown_ = text;
  }
  void Say(std::string_view event, const std::string& text) {
    events_.Say(EventLevel::kInfo, event, text);
    if (!quiet_) line_.Print(text);
  }
  void End() { line_.End(); }

 private:
  bool quiet_;
  EventLog& events_;
  LiveLine line_;
  std::string waiting_, shown_;
  std::optional<trainer::PeerState> state_;
  std::int32_t round_ = 0;
};

int Train(scenarios::Scenario scenario, const JoinSetup& setup, EventLog& events) {
  std::atomic<bool> stop{false};
  InstallInterruptHandlers(stop);
  const auto dataset = OpenData(scenario);
  const trainer::World world = FirstWorld(scenario);
  const trainer::Allocation allocation = scenarios::BuildAllocation(scenario, *world.table);
  if (setup.node && (*setup.node < 0 || *setup.node >= allocation.nodes())) {
    throw std::invalid_argument(fmt::format("--node {}: the scenario has nodes 0 to {}",
                                            *setup.node, allocation.nodes() - 1));
  }
  const std::string hash = scenarios::ScenarioHash(scenario);
  events.SetNode(setup.node.value_or(trainer::kCoordinator));
  events.Say(
      EventLevel::kInfo, "start",
      fmt::format("{} {} with spes-sim {}", scenario.name, hash, analysis::ProgramVersion()));
  const std::string folder = JournalFolder(scenario);

  auto pool = std::make_unique<trainer::ComputePool>(1);  // a node does one thing at a time
  NodeDisplay display(setup.quiet || setup.log.takes_standard_error(), events);
  trainer::TcpJoinConfig config;
  config.address = setup.address;
  config.node = setup.node;
  config.nodes = allocation.nodes();
  config.security = scenarios::BuildTcpSecurity(scenario, setup.address, false, setup.node);
  config.options = scenarios::BuildTcpOptions(scenario, *world.table, "");
  config.scenario = scenarios::BuildTcpScenario(scenario, hash);
  const std::unique_ptr<trainer::TcpClient> client =
      trainer::JoinTcp(std::move(config), world.table, *pool, events, stop,
                       [&display](const std::string& why) { display.Waiting(why); });
  if (!client) return 128 + InterruptSignal();

  const int id = client->node();
  events.SetNode(id);
  display.Say("let in",
              fmt::format("node {} of {}: let in by {}", id, allocation.nodes(), setup.address));
  const auto node = MakeNode(scenario, world, *dataset, allocation, id, nullptr, nullptr,
                             WaitSeconds(scenario, id));
  const auto store = folder.empty() ? nullptr : OpenNodeStore(folder, id);
  trainer::Peer peer(RealPeerConfig(scenario, id, world, hash, store.get()), *node, world, *client,
                     stop);
  // Its thread ends before what it works on.
  const struct PoolEnd {
    std::unique_ptr<trainer::ComputePool>& pool;
    ~PoolEnd() { pool.reset(); }
  } pool_end{pool};
  client->Connect([&peer](trainer::NodeId, const trainer::Message& m) { peer.OnMessage(m); },
                  [&peer, &display](const std::string& why) {
                    display.Say("joining again", fmt::format("joining again: {}", why));
                    peer.Rejoin();
                  });
  try {
    peer.Start();
    client->Run(
        [&] {
          return stop || peer.state() == trainer::PeerState::kFinished || !peer.refusal().empty();
        },
        [&] { display.Show(id, peer, client->StatusOf(trainer::kCoordinator)); });
    if (!peer.refusal().empty()) {
      throw std::runtime_error(
          fmt::format("the coordinator trusts node {} no more: {}", id, peer.refusal()));
    }
  } catch (const std::exception& error) {
    stop = true;  // the pool waits for what has begun
    display.End();
    throw std::runtime_error(error.what());  // underway nothing is the user's mistake any more
  }
  if (stop) {
    display.Say("leave", "leaving: stopped by a signal");
    const trainer::Leave leave{"stopped by a signal"};
    client->Send(trainer::kCoordinator, leave, trainer::WireBytes(leave, *world.table), {});
  }
  client->Close(kFarewell);
  display.End();
  const int signal = InterruptSignal();
  if (signal == 0) events.Say(EventLevel::kInfo, "end", "the run is over");
  return signal != 0 ? 128 + signal : 0;
}

}  // namespace

int RunTcpNode(scenarios::Scenario scenario, const JoinSetup& setup) {
  trainer::InitLibTorch();
  EventLog events(setup.log, trainer::kCoordinator);
  try {
    trainer::RequireDevices(scenario.devices);
    return Train(std::move(scenario), setup, events);
  } catch (const std::exception& error) {
    events.Say(EventLevel::kError, "failed", error.what());
    throw;
  }
}

}  // namespace spes::app
