#include "trainer/runtime/faulty_runtime.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

namespace spes::trainer {

namespace {

constexpr sim::Time kFarthest = std::chrono::hours(24 * 365 * 100);  // that a clock goes wrong

// What has come does not match what was sent.
void Damage(Offer& offer) {
  if (!offer.blocks.empty()) offer.blocks.back().checksum ^= 1;
}

}  // namespace

class FaultyRuntime::Endpoint final : public Runtime {
 public:
  Endpoint(FaultyRuntime& all, NodeId id) : all_(all), id_(id) {}
  sim::Time Now() const override {
    return std::max(sim::Time{0}, all_.below(id_).Now() + all_.machine(id_).clock);
  }
  TimerId After(sim::Time d, std::function<void()> f) override {
    return all_.below(id_).After(d, all_.While(all_.machine(id_).life, std::move(f)));
  }
  void Cancel(TimerId id) override { all_.below(id_).Cancel(id); }
  void Send(NodeId to, Message message, std::int64_t charged_bytes,
            std::function<void()> delivered) override {
    all_.Send(id_, to, std::move(message), charged_bytes, std::move(delivered));
  }
  void Compute(std::function<void()> work, sim::Time charged, std::function<void()> done) override {
    all_.Compute(id_, std::move(work), charged, std::move(done));
  }

 private:
  FaultyRuntime& all_;
  NodeId id_;
};

FaultyRuntime::FaultyRuntime(int nodes, Carrier carrier, Options options)
    : carrier_(std::move(carrier)),
      options_(options),
      machines_(static_cast<std::size_t>(nodes + 1)),
      sessions_(static_cast<std::size_t>(nodes)) {
  for (NodeId id = kCoordinator; id < nodes; ++id) {
    machine(id).endpoint = std::make_unique<Endpoint>(*this, id);
    carrier_.connect(id, [this, id](NodeId from, const Message& m) {
      if (id == kCoordinator) TellCoordinator(from);
      if (alive(id)) machine(id).process.on_message(from, m);
    });
  }
}

FaultyRuntime::~FaultyRuntime() = default;

Runtime& FaultyRuntime::endpoint(NodeId id) { return *machine(id).endpoint; }
bool FaultyRuntime::alive(NodeId id) const { return machine(id).life != nullptr; }

// Processes.

std::function<void()> FaultyRuntime::While(const std::shared_ptr<Life>& life,
                                           std::function<void()> f) const {
  return [life, f = std::move(f)] {
    if (life && life->alive) f();
  };
}

void FaultyRuntime::Begin(NodeId id, Process process) {
  machine(id).life = std::make_shared<Life>();
  machine(id).process = std::move(process);
  if (id != kCoordinator) session(id).renewed = true;
}

void FaultyRuntime::End(NodeId id) {
  Machine& m = machine(id);
  if (!m.life) return;
  m.life->alive = false;
  {
    const std::unique_lock wait(m.life->working);
    m.life->over = true;
  }
  m.life.reset();
  m.process = {};
  if (id != kCoordinator) {
    session(id).node_knows = true;  // nobody is there to be told
    return Break(id, "its process has ended");
  }
  for (std::size_t n = 0; n < sessions_.size(); ++n) {
    sessions_[n].untold.reset();
    Break(static_cast<NodeId>(n), "the coordinator's process has ended");
  }
}

void FaultyRuntime::Compute(NodeId id, std::function<void()> work, sim::Time charged,
                            std::function<void()> done) {
  const std::shared_ptr<Life> life = machine(id).life;
  const sim::Time rest = std::min(options_.after_write, charged);
  struct Outcome {
    Writes writes;
    std::exception_ptr failure;
  };
  const auto outcome = std::make_shared<Outcome>();
  below(id).Compute(
      [life, outcome, work = std::move(work)] {
        const std::shared_lock working(life->working);
        if (life->over) return;
        try {
          work();
        } catch (...) {  // of a process that has ended it is nobody's
          outcome->failure = std::current_exception();
        }
        outcome->writes = TakeStaged(*life);
      },
      charged - rest, While(life, [this, id, life, outcome, rest, done = std::move(done)] {
        if (outcome->failure) std::rethrow_exception(outcome->failure);
        if (!Write(id, outcome->writes)) return machine(id).process.on_full_disk();
        if (rest == sim::Time{0}) return done();
        below(id).After(rest, While(life, done));
      }));
}

void FaultyRuntime::Stage(NodeId id, std::function<void()> write) {
  Life& life = *machine(id).life;
  const std::lock_guard lock(life.staging);
  life.staged[std::this_thread::get_id()].push_back(std::move(write));
}

bool FaultyRuntime::Commit(NodeId id) { return Write(id, TakeStaged(*machine(id).life)); }

// What the calling thread has staged.
FaultyRuntime::Writes FaultyRuntime::TakeStaged(Life& life) {
  const std::lock_guard lock(life.staging);
  const auto staged = life.staged.extract(std::this_thread::get_id());
  return staged ? std::move(staged.mapped()) : Writes{};
}

bool FaultyRuntime::Write(NodeId id, const Writes& writes) const {
  if (!writes.empty() && disk_full(id)) return false;
  for (const auto& write : writes) write();
  return true;
}

void FaultyRuntime::SetDiskFull(NodeId id, bool full) { machine(id).full += full ? 1 : -1; }
bool FaultyRuntime::disk_full(NodeId id) const { return machine(id).full > 0; }
void FaultyRuntime::JumpClock(NodeId id, sim::Time d) {
  machine(id).clock = std::clamp(machine(id).clock + d, -kFarthest, kFarthest);
}

// Connections.

void FaultyRuntime::Break(NodeId node, const std::string& reason) {
  Session& s = session(node);
  if (!s.open) return;
  s.open = s.deaf_up = s.deaf_down = s.renewed = false;
  s.repeat.reset();
  s.hold.reset();
  s.node_knows = !alive(node);
  if (alive(kCoordinator)) s.untold = reason;
  s.reason = reason;
  carrier_.cut(node);
  below(kCoordinator).After(options_.detection, [this, node, number = ++s.number] {
    if (session(node).number != number) return;
    TellNode(node);
    TellCoordinator(node);
  });
}

void FaultyRuntime::TellNode(NodeId node) {
  Session& s = session(node);
  if (s.open || std::exchange(s.node_knows, true)) return;
  machine(node).process.on_lost(kCoordinator, s.reason);
}

void FaultyRuntime::TellCoordinator(NodeId node) {
  const auto reason = std::exchange(session(node).untold, std::nullopt);
  if (reason) machine(kCoordinator).process.on_lost(node, *reason);
}

// Whether a node that knows of having no connection has one now; otherwise it is told so later.
bool FaultyRuntime::Open(NodeId node) {
  Session& s = session(node);
  if (s.outages > 0 || !alive(kCoordinator)) {
    s.node_knows = false;
    s.reason = "the coordinator cannot be reached";
    below(node).After(options_.detection, [this, node, life = machine(node).life] {
      if (life->alive) TellNode(node);
    });
    return false;
  }
  if (s.renewed && options_.replaces_silently) s.untold.reset();
  // Of the connection before this one it hears first, but not within the node's call.
  if (s.untold) below(kCoordinator).After(sim::Time{0}, [this, node] { TellCoordinator(node); });
  s.open = true;
  s.node_knows = false;
  ++s.number;
  return true;
}

void FaultyRuntime::Send(NodeId from, NodeId to, Message message, std::int64_t bytes,
                         std::function<void()> delivered) {
  const bool up = to == kCoordinator;
  const NodeId node = up ? from : to;
  Session& s = session(node);
  if (!s.open && !(up && s.node_knows && Open(node))) return;
  if (up ? s.deaf_up : s.deaf_down) return;
  if (auto* offer = std::get_if<Offer>(&message); offer && std::exchange(s.corrupt, false)) {
    Damage(*offer);
  }
  if (!s.repeat && !s.hold) {
    return below(from).Send(
        to, std::move(message), bytes,
        delivered ? While(machine(from).life, std::move(delivered)) : std::function<void()>());
  }
  const auto pass = [this, from, to, bytes, message = std::move(message),
                     delivered = While(
                         machine(from).life, delivered ? std::move(delivered) : [] {})]() mutable {
    below(from).Send(to, message, bytes, delivered);
  };
  const auto later = [this, node, number = s.number](sim::Time d, auto f) {
    below(node).After(d, [this, node, number, f = std::move(f)]() mutable {
      if (session(node).open && session(node).number == number) f();
    });
  };
  if (const auto after = std::exchange(s.repeat, std::nullopt)) later(*after, pass);
  if (const auto hold = std::exchange(s.hold, std::nullopt)) return later(*hold, pass);
  auto now = pass;
  now();
}  // NOLINT: clang-tidy 14 loses sight of a std::function here; LeakSanitizer sees no leak

void FaultyRuntime::SetReachable(NodeId node, bool reachable) {
  session(node).outages += reachable ? -1 : 1;
  if (!reachable) Break(node, "its link is down");
}

void FaultyRuntime::OpenHalf(NodeId node, bool up, sim::Time d) {
  Session& s = session(node);
  if (!s.open) return;
  (up ? s.deaf_up : s.deaf_down) = true;
  below(kCoordinator).After(d, [this, node, number = s.number] {
    if (session(node).number == number) OnBroken(node, "nothing has come for too long");
  });
}

void FaultyRuntime::OnBroken(NodeId node, const std::string& reason) {
  if (!session(node).open) return;
  Break(node, reason);
  TellNode(node);
  TellCoordinator(node);
}

}  // namespace spes::trainer
