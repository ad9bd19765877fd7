#include "app/tcp_coordinator.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <stdexcept>
#include <utility>
#include <variant>

#include "app/durable_run.h"
#include "app/held_out_trial.h"
#include "app/make_node.h"
#include "app/real_peer.h"
#include "scenarios/sync_builder.h"
#include "scenarios/tcp_builder.h"

namespace spes::app {

namespace {

// For what is still on its way at the end, and for nodes that come once more when all is over.
constexpr std::chrono::seconds kFarewell{10};

trainer::TcpSecurity SecurityOf(const scenarios::Scenario& scenario, const ServeSetup& setup) {
  trainer::TcpSecurity security =
      scenarios::BuildTcpSecurity(scenario, setup.address, true, std::nullopt);
  if (!setup.token.empty()) security.token = setup.token;
  return security;
}

std::unique_ptr<trainer::TcpServer> Listen(const scenarios::Scenario& scenario,
                                           const ServeSetup& setup, trainer::TcpSecurity security,
                                           int nodes, const trainer::World& world,
                                           const std::string& folder, bool resumed,
                                           trainer::ComputePool& pool,
                                           analysis::Recorder& recorder) {
  trainer::TcpServeConfig config;
  config.address = setup.address;
  config.nodes = nodes;
  config.taken = [trains = setup.trains](trainer::NodeId node) {
    return std::find(trains.begin(), trains.end(), node) != trains.end();
  };
  config.resumed = resumed;
  config.security = std::move(security);
  config.options = scenarios::BuildTcpOptions(scenario, *world.table,
                                              (std::filesystem::path(folder) / "uploads").string());
  config.scenario = scenarios::BuildTcpScenario(setup.identity);
  return trainer::ServeTcp(std::move(config), world.table, pool, recorder);
}

}  // namespace

void CheckTrained(const std::vector<int>& trains, int nodes) {
  std::set<int> seen;
  for (const int node : trains) {
    if (node < 0 || node >= nodes) {
      throw std::invalid_argument(
          fmt::format("--node {}: the scenario has nodes 0 to {}", node, nodes - 1));
    }
    if (!seen.insert(node).second) {
      throw std::invalid_argument(fmt::format("--node {}: is named twice", node));
    }
  }
}

TcpCoordinator::TcpCoordinator(const scenarios::Scenario& scenario, const ServeSetup& setup,
                               const trainer::World& world, const trainer::Dataset& dataset,
                               trainer::ComputePool& pool, analysis::Recorder& recorder,
                               const std::atomic<bool>& stop,
                               trainer::Coordinator::OnPublished on_published,
                               Durability durability)
    : stop_(stop),
      trains_(setup.trains),
      allocation_(scenarios::BuildAllocation(scenario, *world.table)),
      was_over_(durability.resume && durability.resume->step >= scenario.training.steps),
      security_(SecurityOf(scenario, setup)),
      certificates_(WatchCertificates(recorder)),
      server_(
          Listen(scenario, setup, security_, allocation_.nodes(), world, durability.nodes.folder,
                 durability.resume && durability.resume->round > 0 && !was_over_, pool, recorder)),
      hub_(*server_) {
  trainer::CoordinatorConfig config = scenarios::BuildCoordinatorConfig(scenario, *world.table);
  config.coding_time = {};  // it is in the time that things take
  config.trust.held_out_time = sim::Time{0};
  SetHeldOutTrial(scenario, dataset, config.trust);
  config.run = durability.run;
  config.scenario_hash = setup.identity.hash;
  config.journal = durability.journal;
  config.decode_memory = [this] { return server_->DecodeMemory(); };
  config.on_quarantine = [this](trainer::NodeId node, const std::string& reason) {
    server_->Ban(node, reason);
  };
  if (durability.resume) {
    server_->SetNow(sim::FromSeconds(durability.resume->now_s));
    if (was_over_) config.patience = std::min<sim::Time>(config.patience, kFarewell);
  }
  coordinator_ = std::make_unique<trainer::Coordinator>(
      config, allocation_, world, hub_.endpoint(trainer::kCoordinator), recorder,
      std::move(on_published), std::move(durability.resume));
  const auto on_message = [this](trainer::NodeId from, const trainer::Message& m) {
    heard_ = server_->Now();
    // A result that comes when all is to end waits with its node: no other round is closed.
    if (stop_ && std::holds_alternative<trainer::Offer>(m)) return;
    coordinator_->OnMessage(from, m);
  };
  hub_.Connect(trainer::kCoordinator, on_message);
  server_->Connect(on_message, [this](trainer::NodeId node, const std::string& reason) {
    coordinator_->OnLost(node, reason);
  });
  for (const int node : setup.trains) {
    AddNode(scenario, setup, world, dataset, node, durability.nodes);
  }
}

TcpCoordinator::~TcpCoordinator() = default;

// Null without TLS.
std::unique_ptr<trainer::CertificateWatch> TcpCoordinator::WatchCertificates(
    analysis::Recorder& recorder) {
  if (!security_.tls) return nullptr;
  const auto tell = [this, &recorder](const std::string& kind, const std::string& line) {
    recorder.Record(analysis::EventRecord{NowSeconds(), trainer::kCoordinator, kind, line});
  };
  return std::make_unique<trainer::CertificateWatch>(
      security_, [this] { server_->RenewCertificate(); }, tell, std::chrono::system_clock::now());
}

std::optional<std::int64_t> TcpCoordinator::certificate_expires_s() const {
  if (!certificates_) return std::nullopt;
  return std::chrono::system_clock::to_time_t(certificates_->expires());
}

void TcpCoordinator::AddNode(const scenarios::Scenario& scenario, const ServeSetup& setup,
                             const trainer::World& world, const trainer::Dataset& dataset, int node,
                             const NodeStates& states) {
  server_->Work([&] {  // a large model takes its time
    nodes_.push_back(MakeNode(scenario, world, dataset, allocation_, node, nullptr, on_devices_,
                              WaitSeconds(scenario, node)));
  });
  trainer::PeerStore* store = nullptr;
  if (!states.folder.empty()) {
    stores_.push_back(OpenNodeStore(states, node));
    store = stores_.back().get();
  }
  peers_.push_back(std::make_unique<trainer::Peer>(
      RealPeerConfig(scenario, node, world, setup.identity.hash, store), *nodes_.back(), world,
      hub_.endpoint(node), stop_));
  hub_.Connect(node, [peer = peers_.back().get()](trainer::NodeId, const trainer::Message& m) {
    peer->OnMessage(m);
  });
}

std::optional<trainer::TcpNodeStatus> TcpCoordinator::ConnectionOf(int node) const {
  if (std::find(trains_.begin(), trains_.end(), node) != trains_.end()) return std::nullopt;
  return server_->StatusOf(node);
}

void TcpCoordinator::Run(const std::function<void()>& tick) {
  try {
    for (const auto& peer : peers_) peer->Start();
    Serve(tick);
  } catch (...) {
    server_->Close(trainer::Seconds(0));  // nodes are told at once
    throw;
  }
  // Nodes that do not get the rest of a message now ask for it when they join again.
  server_->Close(stop_ ? trainer::Seconds(0) : kFarewell);
}

// All nodes know that the run is over, or will never ask.
bool TcpCoordinator::AllKnow() const {
  const auto members = coordinator_->Members();
  return std::all_of(members.begin(), members.end(), [](const trainer::MemberStatus& each) {
    return each.state == "gone" || each.state == "quarantined";
  });
}

void TcpCoordinator::Serve(const std::function<void()>& tick) {
  // What is being written to the journal is in the log and with the nodes as well.
  heard_ = server_->Now();
  const auto over = [this] {
    if (was_over_) return stop_ || AllKnow() || server_->Now() - heard_ >= kFarewell;
    const bool half_done = coordinator_->phase() == trainer::CoordinatorPhase::kReducing;
    return coordinator_->finished() || (stop_ && !half_done);
  };
  server_->Run(over, [&] {
    if (certificates_) certificates_->Look(std::chrono::system_clock::now());
    tick();
  });
}

}  // namespace spes::app
