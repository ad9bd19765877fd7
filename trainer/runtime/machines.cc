#include "trainer/runtime/machines.h"

#include <fmt/format.h>

#include <algorithm>
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

// Whether a fault of this kind may end a process.
bool Ends(const Fault& fault) {
  return fault.kind == FaultKind::kCrash || fault.kind == FaultKind::kFullDisk;
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
  Store(FaultyRuntime& runtime, NodeId node, MemoryPeerStore& disk)
      : runtime_(runtime), node_(node), disk_(disk) {}
  void Write(std::int32_t round, const std::string& state) override {
    runtime_.Stage(node_, [this, round, state] { disk_.Write(round, state); });
  }
  std::vector<std::int32_t> Rounds() const override { return disk_.Rounds(); }
  std::optional<std::string> Read(std::int32_t round) const override { return disk_.Read(round); }

 private:
  FaultyRuntime& runtime_;
  NodeId node_;
  MemoryPeerStore& disk_;
};

Machines::Machines(MachineParts parts, std::vector<Fault> plan, FaultyRuntime::Carrier carrier,
                   FaultyRuntime::Options options, analysis::Recorder& recorder,
                   const std::atomic<bool>& stop)
    : parts_(std::move(parts)),
      plan_(std::move(plan)),
      clock_(carrier.endpoint(kCoordinator)),
      runtime_(parts_.allocation.nodes(), std::move(carrier), options),
      recorder_(recorder),
      stop_(stop),
      durable_(parts_.durable || std::any_of(plan_.begin(), plan_.end(), Ends)),
      nodes_(static_cast<std::size_t>(parts_.allocation.nodes())),
      lives_(nodes_.size() + 1),
      down_(nodes_.size() + 1) {
  if (durable_) {
    parts_.coordinator.journal = [this](const CoordinatorState& state) {
      runtime_.Stage(kCoordinator,
                     [this, copy = std::make_shared<const CoordinatorState>(Copy(state))] {
                       journal_ = copy;
                       if (on_journalled) on_journalled(*copy);
                     });
    };
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      nodes_[n].disk = std::make_unique<MemoryPeerStore>();
      nodes_[n].store = std::make_unique<Store>(runtime_, static_cast<NodeId>(n), *nodes_[n].disk);
    }
  }
  Begin(kCoordinator);
}

Machines::~Machines() {
  for (NodeId id = kCoordinator; id < static_cast<NodeId>(nodes_.size()); ++id) runtime_.End(id);
}

void Machines::Start() {
  for (NodeId node = 0; node < static_cast<NodeId>(nodes_.size()); ++node) Begin(node);
  for (const Fault& fault : plan_) {
    After(fault.at - clock_.Now(), [this, &fault] { Strike(fault); });
  }
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
  coordinator_ = std::make_unique<Coordinator>(
      parts_.coordinator, parts_.allocation, parts_.world, runtime_.endpoint(kCoordinator),
      recorder_,
      [this](const PublishedRound& published) {
        if (published.round <= published_) return;  // by the process before this one
        published_ = published.round;
        if (parts_.on_published) parts_.on_published(published);
      },
      journal_ ? std::optional(Copy(*journal_)) : std::nullopt);
  total_rounds_ = coordinator_->total_rounds();
}

void Machines::BeginNode(NodeId node) {
  Machine& m = machine(node);
  PeerConfig config = parts_.peer(node);
  // A peer counts on from this by itself.
  config.incarnation = static_cast<std::uint64_t>(lives_[static_cast<std::size_t>(node + 1)]) << 32;
  config.store = m.store.get();
  if (config.step_time) {
    config.step_time = [&m, step_time = std::move(config.step_time)](std::int64_t step) {
      const sim::Time time = step_time(step);
      double factor = 1;
      for (const double each : m.slow) factor *= each;
      return factor == 1 ? time : sim::FromSeconds(sim::ToSeconds(time) * factor);
    };
  }
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

// One more reason for which the process cannot be there, or one less.
void Machines::Hinder(NodeId id, bool hindered) {
  int& reasons = down_[static_cast<std::size_t>(id + 1)];
  reasons += hindered ? 1 : -1;
  if (hindered) return End(id);
  if (reasons == 0) Begin(id);
}

// It begins anew once there is room again.
void Machines::OnFullDisk(NodeId id) {
  Event(id, "fault/full_disk", "nothing can be written: the process ends");
  waits_for_disk_.insert(id);
  Hinder(id, true);
}

// Faults.

void Machines::Strike(const Fault& fault) {
  const auto then = [this, fault](std::function<void()> f) {
    if (fault.duration == sim::kNever) return;
    After(fault.duration, [this, fault, f = std::move(f)] {
      Event(fault.node, "fault/over", std::string(Name(fault.kind)));
      f();
    });
  };
  const NodeId id = fault.node;
  Event(id, fmt::format("fault/{}", Name(fault.kind)), Text(fault));
  switch (fault.kind) {
    case FaultKind::kCrash:
      Hinder(id, true);
      return then([this, id] { Hinder(id, false); });
    case FaultKind::kSlow:
      machine(id).slow.insert(fault.factor);
      return then([this, fault] {
        auto& slow = machine(fault.node).slow;
        slow.erase(slow.find(fault.factor));
      });
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
    case FaultKind::kClockJump:
      return runtime_.JumpClock(
          id, std::chrono::duration_cast<sim::Time>(
                  std::chrono::duration<double>(fault.factor * sim::ToSeconds(fault.duration))));
  }
}

void Machines::After(sim::Time d, std::function<void()> f) { clock_.After(d, std::move(f)); }

void Machines::Event(NodeId id, std::string kind, std::string detail) {
  recorder_.Record(
      analysis::EventRecord{sim::ToSeconds(clock_.Now()), id, std::move(kind), std::move(detail)});
}

}  // namespace spes::trainer
