// Processes that end and begin anew, and connections that break, over a runtime where nothing does.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

#include "trainer/protocol/runtime.h"

namespace spes::trainer {

// One process for each node and one for the coordinator; between the coordinator and each node a
// connection, which the node opens by sending. What is on its way over a connection when it breaks
// is lost; both sides are told after a while, and until then what they send is lost as well. All
// times are those of the runtime underneath: the same faults at the same times have the same
// effects, however many threads work.
class FaultyRuntime {
 public:
  using OnMessage = std::function<void(NodeId from, const Message&)>;

  // What carries messages and work.
  struct Carrier {
    // Endpoint of a node or of kCoordinator; lives as long as the FaultyRuntime.
    std::function<Runtime&(NodeId)> endpoint;
    // Whom the messages to it go to.
    std::function<void(NodeId, OnMessage)> connect;
    // Everything that is on its way between the node and the coordinator is lost; nobody is told.
    std::function<void(NodeId node)> cut;
  };
  struct Options {
    sim::Time detection{1'000'000'000};  // from the break of a connection to its ends being told
    // From what a computation wrote being durable to the computation's end, at most its length.
    sim::Time after_write{0};
    // A new process of a node replaces a connection whose break the coordinator has not noticed,
    // without its being told of that; otherwise it is told at once.
    bool replaces_silently = false;
  };
  // How a process hears of things. Call-backs of a process that has ended are not called.
  struct Process {
    OnMessage on_message;
    // The connection with `peer` is lost.
    std::function<void(NodeId peer, const std::string& reason)> on_lost;
    // What it was writing down cannot be written: it must end.
    std::function<void()> on_full_disk;
  };

  FaultyRuntime(int nodes, Carrier carrier, Options options);
  ~FaultyRuntime();

  // What the processes of this node, or of kCoordinator, run on, one after the other.
  Runtime& endpoint(NodeId id);

  // A process begins where none is.
  void Begin(NodeId id, Process process);
  // It ends: its timers, its work and what it has not written down are gone once this returns. Work
  // that is underway on another thread is waited for. Not to be called from a call of its own.
  void End(NodeId id);
  bool alive(NodeId id) const;

  // Within the work of a computation: `write` is called, on the loop's thread, when what it writes
  // is durable, unless the process has ended by then or the disk is full. Outside of one it waits
  // for Commit.
  void Stage(NodeId id, std::function<void()> write);
  // What was staged on this thread outside of a computation is durable now. False when the disk is
  // full.
  bool Commit(NodeId id);

  // There is no way between the node and the coordinator until as many calls have said that there
  // is one.
  void SetReachable(NodeId node, bool reachable);
  // What the node sends (up), or is sent, vanishes until a time-out notices after `d` and the
  // connection is given up. No effect without a connection.
  void OpenHalf(NodeId node, bool up, sim::Time d);
  // The connection was given up by what carries it.
  void OnBroken(NodeId node, const std::string& reason);

  // For the next message from or to the node.
  void RepeatNext(NodeId node, sim::Time after) { session(node).repeat = after; }
  void HoldNext(NodeId node, sim::Time d) { session(node).hold = d; }
  // Its next offer arrives damaged.
  void CorruptNext(NodeId node) { session(node).corrupt = true; }

  void SetDiskFull(NodeId id, bool full);
  bool disk_full(NodeId id) const;
  void JumpClock(NodeId id, sim::Time d);  // no further than a hundred years

 private:
  class Endpoint;
  // A process's own; shared with the work that it has underway.
  using Writes = std::vector<std::function<void()>>;
  struct Life {
    bool alive = true;          // on the loop's thread
    bool over = false;          // no work of it begins any more; with `working`
    std::shared_mutex working;  // held by each of its works
    std::mutex staging;
    std::map<std::thread::id, Writes> staged;  // by whom; with `staging`
  };
  struct Machine {
    std::unique_ptr<Endpoint> endpoint;
    std::shared_ptr<Life> life;  // null where no process is
    Process process;
    int full = 0;
    sim::Time clock{0};  // ahead of the others'
  };
  struct Session {
    bool open = false;
    bool node_knows = true;             // that there is none
    std::optional<std::string> untold;  // the loss that the coordinator is not told of yet
    bool renewed = false;               // the node's process has begun since
    std::uint64_t number = 0;           // counts connections, and what came between them
    int outages = 0;
    bool deaf_up = false, deaf_down = false;
    std::optional<sim::Time> repeat, hold;
    bool corrupt = false;
    std::string reason;
  };

  Machine& machine(NodeId id) { return machines_[static_cast<std::size_t>(id + 1)]; }
  const Machine& machine(NodeId id) const { return machines_[static_cast<std::size_t>(id + 1)]; }
  Session& session(NodeId node) { return sessions_[static_cast<std::size_t>(node)]; }
  Runtime& below(NodeId id) { return carrier_.endpoint(id); }

  bool Open(NodeId node);
  void Break(NodeId node, const std::string& reason);
  void TellNode(NodeId node);
  void TellCoordinator(NodeId node);
  void Send(NodeId from, NodeId to, Message message, std::int64_t bytes,
            std::function<void()> delivered);
  void Compute(NodeId id, std::function<void()> work, sim::Time charged,
               std::function<void()> done);
  static Writes TakeStaged(Life& life);
  bool Write(NodeId id, const Writes& writes) const;
  std::function<void()> While(const std::shared_ptr<Life>& life, std::function<void()> f) const;

  Carrier carrier_;
  Options options_;
  std::vector<Machine> machines_;  // the coordinator first
  std::vector<Session> sessions_;  // [node]
};

}  // namespace spes::trainer
