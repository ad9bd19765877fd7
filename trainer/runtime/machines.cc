#include "trainer/runtime/machines.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace spes::trainer {

namespace {

// Nothing of it is shared with the one who goes on writing.
CoordinatorState Copy(const CoordinatorState& state) {
  CoordinatorState copy = state;
  for (auto& velocity : copy.updater.velocity) {
    if (velocity) velocity = std::make_shared<Buffer>(velocity->Clone());
  }
  for (auto& adam : copy.updater.adam) {
    adam = std::make_shared<AdamMoments>(
        AdamMoments{adam->first.Clone(), adam->second.Clone(), adam->updates});
  }
  for (auto& [id, residual] : copy.updater.residuals) {
    residual = std::make_shared<Buffer>(residual->Clone());
  }
  return copy;
}

constexpr std::size_t kMostNamed = 5;

// Whether one of these may end a process.
bool MayEnd(const FaultStream& faults) {
  return faults.Brings(FaultKind::kCrash) || faults.Brings(FaultKind::kFullDisk);
}

std::string Text(const Fault& fault) {
  std::string text = fault.duration == sim::kNever ? "for good"
                     : fault.duration > sim::Time{0}
                         ? "for " + sim::FormatDuration(fault.duration, 4)
                         : "";
  if (fault.factor != 1)
    text += fmt::format("{}factor {:.6g}", text.empty() ? "" : ", ", fault.factor);
  return text;
}

}  // namespace

// What a node's process writes is on its disk when the runtime says so.
class Machines::Store final : public PeerStore {
 public:
  Store(FaultyRuntime& runtime, NodeId node, PeerStore& disk)
      : runtime_(runtime), node_(node), disk_(disk) {}
  void Write(std::int32_t round, const StateBytes& state) override {
    // The node goes on with what it lies in.
    runtime_.Stage(node_,
                   [this, round, copy = StateBytes(state.Text())] { disk_.Write(round, copy); });
  }
  std::vector<std::int32_t> Rounds() const override { return disk_.Rounds(); }
  std::optional<std::string> Read(std::int32_t round) const override { return disk_.Read(round); }

 private:
  FaultyRuntime& runtime_;
  NodeId node_;
  PeerStore& disk_;
};

Machines::Machines(MachineParts parts, FaultStream faults, FaultyRuntime::Carrier carrier,
                   FaultyRuntime::Options options, analysis::Recorder& recorder,
                   const std::atomic<bool>& stop)
    : parts_(std::move(parts)),
      slow_(faults, parts_.allocation.nodes()),
      faults_(std::move(faults)),
      clock_(carrier.endpoint(kCoordinator)),
      runtime_(parts_.allocation.nodes(), std::move(carrier), options),
      recorder_(recorder),
      stop_(stop),
      durable_(parts_.durable || MayEnd(faults_)),
      nodes_(static_cast<std::size_t>(parts_.allocation.nodes())),
      lives_(nodes_.size() + 1),
      down_(nodes_.size() + 1) {
  if (parts_.resume) {
    journal_ = std::make_shared<const CoordinatorState>(*std::exchange(parts_.resume, {}));
  }
  KeepStates();
  Begin(kCoordinator);
}

Machines::~Machines() {
  for (NodeId id = kCoordinator; id < static_cast<NodeId>(nodes_.size()); ++id) runtime_.End(id);
}

// What a process writes waits for its virtual time where the process may end before.
void Machines::KeepStates() {
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    const auto node = static_cast<NodeId>(n);
    Machine& m = nodes_[n];
    if (parts_.store) m.disk = parts_.store(node);
    if (!durable_) {
      m.store = std::move(m.disk);
      continue;
    }
    if (!m.disk) m.disk = std::make_unique<MemoryPeerStore>();
    m.store = std::make_unique<Store>(runtime_, node, *m.disk);
  }
  if (!durable_) return;
  parts_.coordinator.journal = [this, outside = std::move(parts_.coordinator.journal)](
                                   const CoordinatorState& state) {
    runtime_.Stage(kCoordinator,
                   [this, outside, copy = std::make_shared<const CoordinatorState>(Copy(state))] {
                     journal_ = copy;
                     if (outside) outside(*copy);
                     if (on_journalled) on_journalled(*copy);
                   });
  };
}

void Machines::Start() {
  for (NodeId node = 0; node < static_cast<NodeId>(nodes_.size()); ++node) Begin(node);
  next_ = faults_.Next();
  AwaitFaults();
}

void Machines::AwaitFaults() {
  if (!next_) return;
  clock_.After(std::max(sim::Time{0}, next_->at - clock_.Now()), [this] {
    for (; next_ && next_->at <= clock_.Now(); next_ = faults_.Next()) Strike(*next_);
    AwaitFaults();
  });
}

bool Machines::deserted() const {
  if (!coordinator_ ||
      !std::all_of(nodes_.begin(), nodes_.end(), [](const Machine& each) { return each.gone; })) {
    return false;
  }
  const CoordinatorPhase phase = coordinator_->phase();
  return phase == CoordinatorPhase::kWaiting || phase == CoordinatorPhase::kTraining;
}

std::string Machines::WaitedFor() const {
  if (!coordinator_) return "the coordinator (down)";
  const std::vector<MemberStatus> members = coordinator_->Members();
  std::vector<std::string> named;
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    const std::string_view state = members[n].state;
    if (state == "quarantined" || (state == "idle" && nodes_[n].peer)) continue;
    named.push_back(fmt::format("node {} ({})", n,
                                nodes_[n].gone   ? "ended for good"
                                : nodes_[n].peer ? state
                                                 : std::string_view("down")));
  }
  if (named.empty()) return "nobody";
  const std::size_t left = named.size() - std::min(named.size(), kMostNamed);
  named.resize(named.size() - left);
  return fmt::format("{}{}", fmt::join(named, ", "),
                     left > 0 ? fmt::format(" and {} more", left) : "");
}

// Processes.

void Machines::Begin(NodeId id) {
  ++lives_[static_cast<std::size_t>(id + 1)];
  if (on_begin) on_begin(id);
  if (id == kCoordinator) {
    BeginCoordinator();
  } else {
    BeginNode(id);
  }
  if (!runtime_.Commit(id)) OnFullDisk(id);
}

void Machines::BeginCoordinator() {
  runtime_.Begin(kCoordinator,
                 {[this](NodeId from, const Message& m) { coordinator_->OnMessage(from, m); },
                  [this](NodeId node, const std::string& why) { coordinator_->OnLost(node, why); },
                  [this] { OnFullDisk(kCoordinator); }});
  std::optional<CoordinatorState> state;
  if (journal_) state = Copy(*journal_);
  if (!durable_) journal_.reset();
  coordinator_ = std::make_unique<Coordinator>(
      parts_.coordinator, parts_.allocation, parts_.world, runtime_.endpoint(kCoordinator),
      recorder_,
      [this](const PublishedRound& published) {
        if (published.round <= published_) return;  // by the process before this one
        published_ = published.round;
        if (parts_.on_published) parts_.on_published(published);
      },
      std::move(state));
  total_rounds_ = coordinator_->total_rounds();
}

void Machines::BeginNode(NodeId node) {
  Machine& m = machine(node);
  PeerConfig config = parts_.peer(node);
  // A peer counts on from this by itself.
  config.incarnation = static_cast<std::uint64_t>(lives_[static_cast<std::size_t>(node + 1)]) << 32;
  config.store = m.store.get();
  config.drawn_out = [this, node](sim::Time after, sim::Time time) {
    return slow_.Duration(node, clock_.Now() + after, time);
  };
  m.node = parts_.node(node);
  m.peer = std::make_unique<Peer>(std::move(config), *m.node, parts_.world, runtime_.endpoint(node),
                                  stop_);
  runtime_.Begin(node, {[&m](NodeId, const Message& message) { m.peer->OnMessage(message); },
                        [&m](NodeId, const std::string&) { m.peer->OnLost(); },
                        [this, node] { OnFullDisk(node); }});
  m.peer->Start();
}

void Machines::End(NodeId id) {
  runtime_.End(id);
  if (id == kCoordinator) {
    coordinator_.reset();
  } else {
    machine(id).peer.reset();
    machine(id).node.reset();
  }
}

// One more reason, `why`, for which the process cannot be there, or one less.
void Machines::Hinder(NodeId id, bool hindered, const std::string& why) {
  int& reasons = down_[static_cast<std::size_t>(id + 1)];
  reasons += hindered ? 1 : -1;
  if (hindered) {
    if (reasons == 1) Event(id, "down", why);
    return End(id);
  }
  if (reasons > 0) return;
  Event(id, "up", "");
  Begin(id);
}

// It begins anew once there is room again.
void Machines::OnFullDisk(NodeId id) {
  waits_for_disk_.insert(id);
  Hinder(id, true, "nothing can be written");
}

// Faults.

void Machines::Strike(const Fault& fault) {
  const auto then = [this, fault](std::function<void()> f) {
    if (fault.duration == sim::kNever) return;
    clock_.After(fault.duration, [this, fault, f = std::move(f)] {
      Event(fault.node, "fault/over", std::string(Name(fault.kind)));
      f();
    });
  };
  const NodeId id = fault.node;
  Event(id, fmt::format("fault/{}", Name(fault.kind)), Text(fault));
  switch (fault.kind) {
    case FaultKind::kCrash:
      if (id != kCoordinator && fault.duration == sim::kNever) machine(id).gone = true;
      Hinder(id, true, "crashed");
      return then([this, id] { Hinder(id, false); });
    case FaultKind::kSlow:
      return then([] {});  // computations have known beforehand
    case FaultKind::kOutage:
      runtime_.SetReachable(id, false);
      return then([this, id] { runtime_.SetReachable(id, true); });
    case FaultKind::kHalfOpenUp:
    case FaultKind::kHalfOpenDown:
      return runtime_.OpenHalf(id, fault.kind == FaultKind::kHalfOpenUp, fault.duration);
    case FaultKind::kCorrupt:
      return runtime_.CorruptNext(id);
    case FaultKind::kRepeat:
      return runtime_.RepeatNext(id, fault.duration);
    case FaultKind::kReorder:
      return runtime_.HoldNext(id, fault.duration);
    case FaultKind::kFullDisk:
      runtime_.SetDiskFull(id, true);
      return then([this, id] {
        runtime_.SetDiskFull(id, false);
        if (!runtime_.disk_full(id) && waits_for_disk_.erase(id) > 0) Hinder(id, false);
      });
    case FaultKind::kClockJump: {
      const double jump_s = std::clamp(fault.factor * sim::ToSeconds(fault.duration), -4e9, 4e9);
      return runtime_.JumpClock(
          id, std::chrono::duration_cast<sim::Time>(std::chrono::duration<double>(jump_s)));
    }
  }
}

void Machines::Event(NodeId id, std::string kind, std::string detail) {
  recorder_.Record(
      analysis::EventRecord{sim::ToSeconds(clock_.Now()), id, std::move(kind), std::move(detail)});
}

}  // namespace spes::trainer
