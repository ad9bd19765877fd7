#include "trainer/runtime/sim_runtime.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "trainer/runtime/flow_record.h"

namespace spes::trainer {

class SimRuntime::Endpoint final : public Runtime {
 public:
  Endpoint(SimRuntime& all, NodeId id) : all_(all), id_(id) {}

  sim::Time Now() const override { return all_.loop_.Now(); }
  TimerId After(sim::Time d, std::function<void()> f) override {
    return all_.loop_.After(d, std::move(f));
  }
  void Cancel(TimerId id) override { all_.loop_.Cancel(id); }
  void Send(NodeId to, Message message, std::int64_t charged_bytes,
            std::function<void()> delivered) override {
    all_.Send(id_, to, {std::move(message), charged_bytes, std::move(delivered)});
  }
  void Compute(std::function<void()> work, sim::Time charged, std::function<void()> done) override {
    auto result = std::make_shared<std::future<void>>(
        all_.pool_.Submit(all_.loop_.Now() + charged, std::move(work)));
    all_.loop_.After(charged, [&all = all_, result, done = std::move(done)] {
      all.WaitFor(*result);
      result->get();
      done();
    });
  }

  OnMessage on_message;
  OnLost on_lost;

 private:
  SimRuntime& all_;
  NodeId id_;
};

SimRuntime::SimRuntime(sim::EventLoop& loop, sim::Network& network, ComputePool& pool,
                       analysis::Recorder& recorder, int nodes, int streams)
    : loop_(loop),
      network_(network),
      pool_(pool),
      recorder_(recorder),
      nodes_(nodes),
      streams_(streams),
      connections_(static_cast<std::size_t>(nodes)) {
  for (NodeId id = 0; id < nodes; ++id) {
    endpoints_.push_back(std::make_unique<Endpoint>(*this, id));
    network_.Prepare(id, nodes, streams);
    network_.Prepare(nodes, id, streams);
  }
  endpoints_.push_back(std::make_unique<Endpoint>(*this, kCoordinator));
}

SimRuntime::~SimRuntime() = default;

void SimRuntime::WaitFor(std::future<void>& work) {
  const auto start = std::chrono::steady_clock::now();
  while (work.wait_for(std::chrono::milliseconds(100)) != std::future_status::ready) {
    if (on_idle_) on_idle_();
  }
  waited_s_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Runtime& SimRuntime::endpoint(NodeId id) { return At(id); }

void SimRuntime::Connect(NodeId id, OnMessage on_message, OnLost lost) {
  At(id).on_message = std::move(on_message);
  At(id).on_lost = std::move(lost);
}

void SimRuntime::UseExchange(std::shared_ptr<const ExchangeSchedule> schedule, int sends) {
  exchange_ = std::make_unique<PlannedExchange>(
      std::move(schedule), network_, recorder_,
      sim::PlanRunner::Options{.streams = streams_, .sends = sends}, [this](NodeId node) {
        // Not at once: the node may be in the middle of sending.
        loop_.After(sim::Time{0}, [this, node] {
          if (auto offer = offers_.extract(node)) Deliver(node, kCoordinator, offer.mapped());
        });
      });
}

// False for what travels within its message.
bool SimRuntime::SendByExchange(NodeId from, NodeId to, Transfer& transfer) {
  if (!exchange_) return false;
  if (std::holds_alternative<Update>(transfer.message)) {
    loop_.After(sim::Time{0},
                [this, from, to, transfer = std::move(transfer)] { Deliver(from, to, transfer); });
    return true;
  }
  const std::int32_t round = RoundOf(transfer.message);
  if (!std::holds_alternative<Offer>(transfer.message) || !exchange_->Awaits(from, round)) {
    return false;
  }
  offers_.emplace(from, std::move(transfer));
  exchange_->Ready(from, round);
  return true;
}

void SimRuntime::Send(NodeId from, NodeId to, Transfer transfer) {
  transfer.cuts = ConnectionOf(from, to).cuts;
  if (SendByExchange(from, to, transfer)) return;
  if (!IsBulk(transfer.message)) return Start(from, to, std::move(transfer));
  Channel& channel = channels_[{from, to}];
  if (channel.busy) {
    channel.waiting.push_back(std::move(transfer));
  } else {
    channel.busy = true;
    Start(from, to, std::move(transfer));
  }
}

void SimRuntime::Start(NodeId from, NodeId to, Transfer transfer) {
  const bool bulk = IsBulk(transfer.message);
  sim::Flow flow;
  flow.from = Host(from);
  flow.to = Host(to);
  flow.bytes = transfer.bytes;
  flow.streams = bulk ? streams_ : 1;
  flow.traffic_class = bulk ? sim::TrafficClass::kBulk : sim::TrafficClass::kControl;
  ConnectionOf(from, to).flows.insert(network_.Start(
      flow, [this, from, to, transfer = std::move(transfer)](const sim::FlowResult& result) {
        OnFlowDone(from, to, transfer, result);
      }));
}

void SimRuntime::Deliver(NodeId from, NodeId to, const Transfer& transfer) {
  if (IsCut(from, to, transfer)) return;
  At(to).on_message(from, transfer.message);
  if (transfer.delivered && !IsCut(from, to, transfer)) transfer.delivered();
}

void SimRuntime::Cut(NodeId node) {
  Connection& connection = connections_[static_cast<std::size_t>(node)];
  ++connection.cuts;
  for (const sim::FlowId flow : std::exchange(connection.flows, {})) network_.Cancel(flow);
  channels_.erase({node, kCoordinator});
  channels_.erase({kCoordinator, node});
  offers_.erase(node);
}

void SimRuntime::OnFlowDone(NodeId from, NodeId to, const Transfer& transfer,
                            const sim::FlowResult& result) {
  recorder_.Record(MakeFlowRecord(result, from, to, std::string(Name(transfer.message)),
                                  RoundOf(transfer.message)));
  if (IsCut(from, to, transfer)) return;
  ConnectionOf(from, to).flows.erase(result.id);
  if (IsBulk(transfer.message)) {
    Channel& channel = channels_[{from, to}];
    if (channel.waiting.empty()) {
      channel.busy = false;
    } else {
      Transfer next = std::move(channel.waiting.front());
      channel.waiting.pop_front();
      Start(from, to, std::move(next));
    }
  }
  if (result.outcome == sim::FlowOutcome::kDone) return Deliver(from, to, transfer);
  const std::string reason =
      fmt::format("{} {}: the transfer {} after {} bytes", Name(transfer.message),
                  RoundOf(transfer.message), sim::Name(result.outcome), result.delivered_bytes);
  if (At(from).on_lost) At(from).on_lost(to, reason);
  if (At(to).on_lost) At(to).on_lost(from, reason);
}

}  // namespace spes::trainer
