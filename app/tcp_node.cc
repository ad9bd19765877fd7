#include "app/tcp_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "analysis/version.h"
#include "app/durable_run.h"
#include "app/exit_code.h"
#include "app/interrupt.h"
#include "app/make_node.h"
#include "app/node_display.h"
#include "app/output_paths.h"
#include "app/prepare.h"
#include "app/random_number.h"
#include "app/real_peer.h"
#include "scenarios/scenario_hash.h"
#include "scenarios/sync_builder.h"
#include "scenarios/tcp_builder.h"
#include "scenarios/topology_builder.h"
#include "trainer/model/cuda_library.h"
#include "trainer/model_node.h"
#include "trainer/protocol/wire_size.h"
#include "trainer/runtime/compute_pool.h"
#include "trainer/runtime/tcp/key_files.h"
#include "trainer/runtime/tcp/tcp_runtime.h"

namespace spes::app {

namespace {

constexpr trainer::Seconds kFarewell{10};  // for what is still on its way at the end

// The node that this folder holds a state of, and no other; nothing where it holds several or none.
std::optional<int> OnlyNodeIn(const std::vector<int>& kept) {
  return kept.size() == 1 ? std::optional(kept.front()) : std::nullopt;
}

// From any thread, for the display of one.
class Warnings {
 public:
  void Add(const std::string& why) {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(why);
  }
  void Say(NodeDisplay& display) {
    const std::lock_guard lock(mutex_);
    for (const std::string& why : std::exchange(waiting_, {})) display.Warn("damaged", why);
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> waiting_;
};

int Train(scenarios::Scenario scenario, const JoinSetup& setup, EventLog& events) {
  std::atomic<bool>& stop = InstallInterruptHandlers();
  const int nodes = scenarios::NodeCount(scenario);
  if (setup.node && (*setup.node < 0 || *setup.node >= nodes)) {
    throw std::invalid_argument(
        fmt::format("--node {}: the scenario has nodes 0 to {}", *setup.node, nodes - 1));
  }
  CheckJournalFolder(scenario);
  const auto dataset = OpenData(scenario);
  trainer::World world = FirstWorld(scenario);
  const trainer::Allocation allocation = scenarios::BuildAllocation(scenario, *world.table);
  const scenarios::ScenarioIdentity identity = scenarios::IdentityOf(scenario);
  if (setup.node) events.SetNode(*setup.node);
  events.Say(EventLevel::kInfo, "start",
             fmt::format("{} {} with spes-sim {}", scenario.name, identity.hash,
                         analysis::ProgramVersion()));
  const std::string folder = JournalFolder(scenario);
  const std::vector<int> kept = NodesKeptIn(folder);

  auto pool = std::make_unique<trainer::ComputePool>(1);  // a node does one thing at a time
  NodeDisplay display(setup.quiet, setup.log.takes_standard_error(), events);
  trainer::TcpJoinConfig config;
  config.address = setup.address;
  config.node = setup.node;
  config.nodes = allocation.nodes();
  config.preferred = OnlyNodeIn(kept);
  config.security = scenarios::BuildTcpSecurity(scenario, setup.address, false, setup.node);
  for (const trainer::CertificateDates& dates : trainer::DatesOf(config.security)) {
    const std::string soon = trainer::CheckDates(dates);
    if (!soon.empty()) display.Warn("certificate", soon);
  }
  config.options = scenarios::BuildTcpOptions(scenario, *world.table, "");
  config.scenario = scenarios::BuildTcpScenario(identity);
  const std::unique_ptr<trainer::TcpClient> client =
      trainer::JoinTcp(std::move(config), world.table, *pool, display, stop,
                       [&display](const std::string& why) { display.Waiting(why); });
  if (!client) return 128 + InterruptSignal();

  const int id = client->node();
  events.SetNode(id);
  const auto now_s = [&client] { return sim::ToSeconds(client->Now()); };
  events.SetClock(now_s);
  const struct ClockEnd {
    EventLog& events;
    const decltype(now_s)& clock;
    ~ClockEnd() {
      events.SetClock([last = clock()] { return last; });
    }
  } clock_end{events, now_s};
  display.Say("let in", fmt::format("as node {} of {} by {}", id, nodes, setup.address),
              fmt::format("node {} of {}: let in by {}", id, nodes, setup.address));
  const std::string place = NodeFolder(folder, id);
  // Whoever has said which one it is knows, and several nodes may have one folder.
  if (!setup.node && !kept.empty() && std::find(kept.begin(), kept.end(), id) == kept.end()) {
    display.Warn("other node",
                 fmt::format("{} holds what node {} has kept, and this is node {}, which begins "
                             "without; --node says which one to be",
                             folder, fmt::join(kept, ", "), id));
  }
  std::unique_ptr<trainer::Node> node;
  Warnings damaged;
  std::unique_ptr<trainer::PeerStore> store;
  std::optional<trainer::Peer> peer;
  // Its thread ends before what it works on.
  const struct PoolEnd {
    std::unique_ptr<trainer::ComputePool>& pool;
    ~PoolEnd() { pool.reset(); }
  } pool_end{pool};
  bool underway = false;
  try {
    client->Work([&] {  // a large model takes its time
      node = MakeNode(scenario, world, *dataset, allocation, id, nullptr, nullptr,
                      WaitSeconds(scenario, id));
    });
    if (!folder.empty()) {
      store = OpenNodeStore(
          {.folder = folder, .warn = [&](const std::string& why) { damaged.Add(why); }}, id);
    }
    trainer::PeerConfig peer_config =
        RealPeerConfig(scenario, id, world, identity.hash, store.get());
    peer_config.kept_in = place;
    peer.emplace(std::move(peer_config), *node, world, *client, stop);
    world.blocks = {};  // the node has them
    underway = true;
    client->Connect([&peer](trainer::NodeId, const trainer::Message& m) { peer->OnMessage(m); },
                    [&peer, &display](const std::string& why) {
                      display.Say("joining again", why, "joining again: " + why);
                      peer->Rejoin();
                    });
    peer->Start();
    client->Run(
        [&] {
          return stop || peer->state() == trainer::PeerState::kFinished || !peer->refusal().empty();
        },
        [&] {
          damaged.Say(display);
          display.Show(id, *peer, client->StatusOf(trainer::kCoordinator));
        });
    if (!peer->refusal().empty()) {
      throw std::runtime_error(
          fmt::format("the coordinator trusts node {} no more: {}", id, peer->refusal()));
    }
  } catch (const std::exception& error) {
    stop = true;  // the pool waits for what has begun
    client->Fail(error.what());
    damaged.Say(display);
    display.End();
    if (!underway || dynamic_cast<const trainer::NotOfThisRun*>(&error) != nullptr) throw;
    throw std::runtime_error(error.what());  // underway nothing else is the user's mistake
  }
  if (stop) {
    display.Say("leave", "stopped by a signal", "leaving: stopped by a signal");
    const trainer::Leave leave{"stopped by a signal"};
    client->Send(trainer::kCoordinator, leave, trainer::WireBytes(leave, *world.table), {});
  }
  client->Close(kFarewell);
  display.End();
  const int signal = InterruptSignal();
  if (signal == 0) display.Say("end", "the run is over");
  return signal != 0 ? 128 + signal : 0;
}

}  // namespace

int RunTcpNode(scenarios::Scenario scenario, const JoinSetup& setup) {
  trainer::InitLibTorch();
  EventLog events(setup.log, EventLog::kNoNumberYet);
  try {
    trainer::RequireDevices(scenario.devices);
    return Train(std::move(scenario), setup, events);
  } catch (const std::exception& error) {
    events.Say(EventLevel::kError, "failed", error.what());
    if (!setup.log.takes_standard_error()) throw;
    return ExitCodeOf(error);
  }
}

}  // namespace spes::app
