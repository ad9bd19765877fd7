// Carries out a traffic plan over a network model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <queue>
#include <set>
#include <utility>
#include <vector>

#include "sim/network.h"
#include "sim/traffic/dependents.h"
#include "sim/traffic/plan.h"

namespace spes::sim {

// Single-threaded, driven by the network: whoever steps the EventLoop sees the callbacks. From one
// host to another goes one transfer at a time, as over the connection that they keep; what could
// start meanwhile waits, and the first in the plan's order goes next. A plan can be run any number
// of times, one after the other. Over a run, O(transfers + dependencies) besides the network's own
// work, and a logarithm for what waits.
class PlanRunner {
 public:
  struct Options {
    int streams = 1;  // parallel connections of each transfer
    // Transfers that a host sends at once, to whatever hosts, at most; again the first in the
    // plan's order goes next. 0: no limit.
    int sends = 0;
  };

  // Any may be empty. They may call Ready, and `finished` and `failed` also Begin; none may destroy
  // the runner. After an exception thrown by one the runner can only be destroyed.
  struct Events {
    // The host is ready, and no transfer from or to it is left.
    std::function<void(int host)> host_finished = {};
    // All hosts are; once per run.
    std::function<void()> finished = {};
    // The flow of a transfer was started, now.
    std::function<void(int transfer)> started = {};
    // A flow ended, whatever its outcome; late ones of a run that failed included.
    std::function<void(int transfer, const FlowResult& result)> flow = {};
    // This flow stalled, failed or was cancelled by others, and the run is over: its other flows
    // have been cancelled, and `finished` will not be called. Instead of `finished`, once.
    std::function<void(int transfer, const FlowResult& result)> failed = {};
  };

  // Throws std::invalid_argument as Validate does, and on a number of streams below 1 or of sends
  // below 0. `network` must outlive the runner.
  PlanRunner(TrafficPlan plan, int hosts, Network& network, Options options, Events events);
  // Cancels what is under way; no callback comes any more.
  ~PlanRunner();
  PlanRunner(const PlanRunner&) = delete;
  PlanRunner& operator=(const PlanRunner&) = delete;

  // Opens the connections of the plan ahead of time, as Network::Prepare: before virtual time
  // passes.
  void Prepare();

  // Starts a run in which no host is ready yet. Throws std::logic_error while another is running.
  void Begin();

  // `host` may send from now on; to receive it need not be ready. Throws std::logic_error when no
  // run is under way or the host is ready already.
  void Ready(int host);

  bool running() const { return running_; }
  bool ready(int host) const { return ready_[static_cast<std::size_t>(host)]; }
  const TrafficPlan& plan() const { return plan_; }

 private:
  using Queue = std::priority_queue<int, std::vector<int>, std::greater<>>;

  const Transfer& transfer(int i) const { return plan_.transfers[static_cast<std::size_t>(i)]; }
  void Release(int transfer);
  void Drain();
  void Start(int transfer);
  void Pump(int host);
  void Launch(int transfer);
  void OnFlow(int transfer, std::uint64_t run, const FlowResult& result);
  void Complete(int transfer);
  void StepOf(int host);
  void Stop();

  TrafficPlan plan_;
  int hosts_;
  Network& network_;
  Options options_;
  Events events_;
  Dependents dependents_;
  IndexLists outgoing_;                     // transfers by sender, in plan order
  std::vector<std::pair<int, int>> pairs_;  // from, to: of transfers that are no joints
  std::vector<int> pair_of_;                // [transfer] index of pairs_; −1: a joint

  bool running_ = false;
  bool draining_ = false;
  std::uint64_t run_ = 0;
  int hosts_left_ = 0;
  std::vector<bool> ready_;         // [host]
  std::vector<int> waits_;          // [transfer] what it still waits for, its sender included
  std::vector<std::int64_t> open_;  // [host] transfers not over yet, and 1 until it is ready
  std::vector<int> sending_;        // [host] flows under way
  std::vector<Queue> queues_;       // [host] transfers whose turn it is, one of each pair at most
  std::vector<bool> taken_;         // [pair] one is under way or in the host's queue
  std::vector<Queue> behind_;       // [pair] others that may start
  std::queue<int> startable_;
  std::set<FlowId> active_;
  std::shared_ptr<char> alive_ = std::make_shared<char>();  // flows may outlive the runner
};

}  // namespace spes::sim
