#include "tests/trainer/protocol/chaos_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

#include "tests/trainer/protocol/chaos_ledger.h"
#include "tests/trainer/protocol/chaos_node.h"
#include "tests/trainer/protocol/chaos_settings.h"
#include "tests/trainer/protocol/fake_node.h"
#include "tests/trainer/protocol/scripted_carrier.h"
#include "trainer/runtime/machines.h"

namespace spes::trainer {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kMaxViolations = 20;  // the first ones say most

class ChaosRun {
 public:
  ChaosRun(const ChaosSettings& settings, std::vector<Fault> plan, bool disturbed,
           std::ostream* trace)
      : settings_(settings),
        world_(MakeTinyWorld(settings.table)),
        dice_(Key(settings.seed, disturbed ? 3 : 4)),
        trace_(trace),
        ledger_(settings, world_),
        recorder_(ledger_, [this](const std::string& line) { Trace(line); }),
        gone_for_good_(std::any_of(plan.begin(), plan.end(),
                                   [](const Fault& f) { return f.duration == sim::kNever; })) {
    ledger_.wrong = [this](const std::string& what) { Wrong(what); };
    runtime_.script = [this](NodeId from, NodeId to, Message& m) { return OnSend(from, to, m); };
    MachineParts parts{
        settings_.coordinator,
        MakeAllocation(settings_.coordinator.allocation, *settings_.table, settings_.nodes),
        world_,
        [this](NodeId node) { return ConfigOf(node); },
        [this](NodeId node) { return NodeOf(node); },
        [this](const PublishedRound& p) { ledger_.OnPublished(p); },
        {},
        {},
        settings.coordinator.patience == sim::Time{0}};  // see Step
    FaultyRuntime::Carrier carrier = CarrierOf(runtime_);
    carrier.connect = [this](NodeId id, FaultyRuntime::OnMessage f) {
      runtime_.Connect(id, [this, id, f = std::move(f)](NodeId from, const Message& m) {
        OnDelivery(from, id, m);
        f(from, m);
      });
    };
    allocation_ = parts.allocation;
    machines_ = std::make_unique<Machines>(
        std::move(parts), FaultStream({.scripted = std::move(plan)}, settings_.nodes),
        std::move(carrier), settings_.runtime, recorder_, stop_);
    machines_->on_journalled = [this](const CoordinatorState& s) { ledger_.OnJournalled(s); };
    machines_->on_begin = [this](NodeId id) {
      if (id == kCoordinator) {
        ledger_.OnCoordinatorBegins();
      } else {
        ledger_.OnNodeBegins(id);
      }
    };
  }

  void Run() {
    try {
      machines_->Start();
      while (violations_.size() < kMaxViolations && runtime_.loop.Now() < seconds(20'000)) {
        if (!Step()) break;
      }
    } catch (const std::exception& error) {
      return Wrong(fmt::format("the run fails: {}", error.what()));
    }
    if (machines_->finished()) return;
    // A coordinator that began anew before the first round cannot know that a node is gone for
    // good: it waits for it as for one that has never come.
    const Coordinator* coordinator = machines_->coordinator();
    if (gone_for_good_ && machines_->lives(kCoordinator) > 1 && coordinator &&
        coordinator->round() == 0 && coordinator->phase() == CoordinatorPhase::kWaiting) {
      return;
    }
    Wrong(fmt::format("the run stands still after round {} of {}", machines_->round(),
                      machines_->total_rounds()));
    for (NodeId node = 0; node < settings_.nodes; ++node) {
      Trace(fmt::format("node {} is {}", node,
                        machines_->peer(node) ? Name(machines_->peer(node)->state()) : "gone"));
    }
  }

  sim::Time Now() const { return runtime_.loop.Now(); }
  std::string Hash() const {
    return machines_->coordinator() ? WorldHash(machines_->coordinator()->world()) : "";
  }
  const std::vector<std::string>& violations() const { return violations_; }
  const std::map<std::string, int>& events() const { return recorder_.events; }
  int events(const std::string& kind) const {
    const auto found = recorder_.events.find(kind);
    return found == recorder_.events.end() ? 0 : found->second;
  }
  std::int32_t rounds() const { return ledger_.rounds(); }

 private:
  // A coordinator without patience fails when it has lost everybody, or all that the last one sends
  // is damaged; whoever runs it begins it anew.
  bool Step() {
    try {
      return runtime_.loop.Step();
    } catch (const std::runtime_error& error) {
      constexpr int kDamagedUploads = 3;
      const std::string what = error.what();
      const bool damaged = what.find("no upload can be used") != std::string::npos &&
                           what.ends_with("does not match") &&
                           events("fault/corrupt") >= kDamagedUploads;
      if (!what.ends_with("no peer is left") && !damaged) throw;
      Trace(what);
      machines_->Strike({Now(), FaultKind::kCrash, kCoordinator, milliseconds(500), 1});
      return true;
    }
  }

  PeerConfig ConfigOf(NodeId node) const {
    PeerConfig config = settings_.peer;
    config.node = node;
    config.world_hash = WorldHash(world_);
    const double speed = settings_.speeds[static_cast<std::size_t>(node)];
    config.step_time = [speed](std::int64_t) { return sim::FromSeconds(0.1 / speed); };
    return config;
  }

  std::unique_ptr<Node> NodeOf(NodeId node) {
    return std::make_unique<ChaosNode>(
        world_, allocation_->blocks(node), node, settings_.peer.gradients,
        ChaosNode::Watch{[this, node](std::int64_t first_step, const ChaosNode& state) {
                           ledger_.OnTrains(node, first_step, state);
                         },
                         [this, node](const NodeBlock& b) { ledger_.OnAdopts(node, b); },
                         [this, node] { ledger_.OnNodeBegins(node); }});
  }

  // Messages with parameters keep their order.
  sim::Time OnSend(NodeId from, NodeId to, Message& message) {
    if (from == kCoordinator) ledger_.OnSent(to, message);
    sim::Time delay = sim::FromSeconds(sim::ToSeconds(settings_.latency) * dice_.Real(0.3, 3));
    if (dice_.Chance(0.05)) delay *= 10;
    if (IsBulk(message)) {
      sim::Time& last = last_[{from, to}];
      delay = last = std::max(last + sim::Time{1}, Now() + delay);
      delay -= Now();
    }
    Trace(fmt::format("{} -> {} {} {}, arrives {:.6f}", from, to, Name(message), RoundOf(message),
                      sim::ToSeconds(Now() + delay)));
    if (auto* offer = std::get_if<Offer>(&message)) {
      ledger_.OnOffer(from, *offer);
      for (OfferedBlock& block : offer->blocks) Strip(block);
    }
    if (auto* admit = std::get_if<Admit>(&message)) {
      for (SentBlock& block : admit->blocks) Strip(block);
    }
    if (auto* update = std::get_if<Update>(&message)) {
      for (SentBlock& block : update->blocks) Strip(block);
    }
    return delay;
  }

  template <class Block>
  void Strip(Block& block) const {
    if (settings_.wire && block.code) block.data = nullptr;
  }

  void OnDelivery(NodeId from, NodeId to, const Message& message) {
    Trace(fmt::format("{} <- {} {} {}", to, from, Name(message), RoundOf(message)));
    if (to != kCoordinator) ledger_.OnReceived(to, message);
  }

  void Wrong(const std::string& what) {
    violations_.push_back(fmt::format("{:.6f} s: {}", sim::ToSeconds(Now()), what));
    Trace("WRONG: " + what);
  }

  void Trace(const std::string& line) {
    if (trace_) *trace_ << fmt::format("{:10.6f} {}\n", sim::ToSeconds(Now()), line) << std::flush;
  }

  const ChaosSettings& settings_;
  World world_;
  Dice dice_;
  std::ostream* trace_;
  std::vector<std::string> violations_;
  ChaosLedger ledger_;
  ChaosRecorder recorder_;
  const bool gone_for_good_;
  ScriptedRuntime runtime_;
  std::atomic<bool> stop_{false};
  std::optional<Allocation> allocation_;
  std::map<std::pair<NodeId, NodeId>, sim::Time> last_;
  std::unique_ptr<Machines> machines_;
};

}  // namespace

ChaosOutcome RunChaos(std::uint64_t seed, std::ostream* trace) {
  const ChaosSettings settings = DrawSettings(seed);
  if (trace) *trace << settings.Text() << "\nUndisturbed:\n";
  ChaosRun undisturbed(settings, {}, false, trace);
  undisturbed.Run();
  std::vector<Fault> plan = DrawFaults(settings, undisturbed.Now());
  if (trace) *trace << "\nFaults:\n" << Text(plan) << "\n";
  const bool all_return = std::none_of(plan.begin(), plan.end(),
                                       [](const Fault& f) { return f.duration == sim::kNever; });
  ChaosRun disturbed(settings, std::move(plan), true, trace);
  disturbed.Run();

  ChaosOutcome outcome;
  for (const std::string& what : undisturbed.violations()) {
    outcome.violations.push_back("undisturbed, " + what);
  }
  outcome.violations.insert(outcome.violations.end(), disturbed.violations().begin(),
                            disturbed.violations().end());
  outcome.events = disturbed.events();
  outcome.rounds = disturbed.rounds();
  // Three damaged uploads are one that is given up.
  outcome.same_required = settings.WaitsForAll() && all_return && disturbed.events("reject") < 3;
  if (outcome.violations.empty() && outcome.same_required &&
      undisturbed.Hash() != disturbed.Hash()) {
    outcome.violations.push_back("all were waited for, but the world is another one");
  }
  if (!outcome.violations.empty()) outcome.violations.push_back(settings.Text());
  return outcome;
}

}  // namespace spes::trainer
