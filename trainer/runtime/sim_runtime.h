// The protocol in virtual time: messages cross a network model, work runs on a pool of threads.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analysis/recorder.h"
#include "sim/event_loop.h"
#include "sim/network.h"
#include "trainer/protocol/runtime.h"
#include "trainer/runtime/compute_pool.h"
#include "trainer/runtime/planned_exchange.h"

namespace spes::trainer {

// All endpoints of a simulated run. Node n is host n of the network, the coordinator is host
// `nodes`. Work is handed to the pool at once and is due when its charged time is over; only then
// does virtual time wait for it. Messages with parameters share one queue per pair of endpoints, so
// that they arrive in order; all others overtake them.
class SimRuntime {
 public:
  // Called on the loop's thread.
  using OnMessage = std::function<void(NodeId from, const Message&)>;
  // `peer` cannot be reached from here: a message to or from it was given up by the network.
  using OnLost = std::function<void(NodeId peer, const std::string& reason)>;

  // References must outlive the runtime. `streams`: parallel connections of a message with
  // parameters. Opens the connections between the coordinator and every node.
  SimRuntime(sim::EventLoop& loop, sim::Network& network, ComputePool& pool,
             analysis::Recorder& recorder, int nodes, int streams);
  ~SimRuntime();

  // The endpoint of a node, or of kCoordinator. Lives as long as the SimRuntime.
  Runtime& endpoint(NodeId id);

  // Before the first message. `lost` may be empty.
  void Connect(NodeId id, OnMessage on_message, OnLost lost = {});

  // From now on the parameters of the rounds travel by the plans of `schedule`: an offer stands for
  // the node's readiness and reaches the coordinator when its part of the round is over; updates
  // take no time. All other messages travel as before. `sends`: transfers of a host at once, 0: no
  // limit. Before the first message. A transfer that fails ends the run, see planned_exchange.h.
  void UseExchange(std::shared_ptr<const ExchangeSchedule> schedule, int sends);

  // Everything that is on its way between the node and the coordinator is lost, and with it the
  // node's part in the exchange at hand; nobody is told. What is cut short is in the log as
  // cancelled. Transfers of an exchange's plan go on.
  void Cut(NodeId node);

  // Called about every 0.1 s of wall time while virtual time waits for work; must not touch the
  // loop.
  void OnIdle(std::function<void()> f) { on_idle_ = std::move(f); }

  // Wall seconds that the loop has waited for work so far.
  double waited_s() const { return waited_s_; }

 private:
  class Endpoint;
  void WaitFor(std::future<void>& work);
  struct Transfer {
    Message message;
    std::int64_t bytes;
    std::function<void()> delivered;
    std::uint64_t cuts = 0;  // of its connection when it was sent
  };
  struct Connection {  // between a node and the coordinator
    std::uint64_t cuts = 0;
    std::set<sim::FlowId> flows;  // underway
  };
  struct Channel {  // of messages with parameters, one at a time
    std::deque<Transfer> waiting;
    bool busy = false;
  };

  int Host(NodeId id) const { return id == kCoordinator ? nodes_ : id; }
  Endpoint& At(NodeId id) { return *endpoints_[static_cast<std::size_t>(Host(id))]; }
  Connection& ConnectionOf(NodeId from, NodeId to) {
    return connections_[static_cast<std::size_t>(from == kCoordinator ? to : from)];
  }
  bool IsCut(NodeId from, NodeId to, const Transfer& transfer) {
    return ConnectionOf(from, to).cuts != transfer.cuts;
  }
  void Send(NodeId from, NodeId to, Transfer transfer);
  bool SendByExchange(NodeId from, NodeId to, Transfer& transfer);
  void Start(NodeId from, NodeId to, Transfer transfer);
  void Deliver(NodeId from, NodeId to, const Transfer& transfer);
  void OnFlowDone(NodeId from, NodeId to, const Transfer& transfer, const sim::FlowResult& result);

  sim::EventLoop& loop_;
  sim::Network& network_;
  ComputePool& pool_;
  analysis::Recorder& recorder_;
  int nodes_;
  int streams_;
  std::function<void()> on_idle_;
  double waited_s_ = 0;
  std::vector<std::unique_ptr<Endpoint>> endpoints_;  // [host]
  std::vector<Connection> connections_;               // [node]
  std::map<std::pair<NodeId, NodeId>, Channel> channels_;
  std::unique_ptr<PlannedExchange> exchange_;  // null: parameters travel within the messages
  std::map<NodeId, Transfer> offers_;          // of nodes whose part of the exchange goes on
};

}  // namespace spes::trainer
