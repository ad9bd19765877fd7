#include "trainer/runtime/sim_runtime.h"

#include <fmt/format.h>

#include <chrono>
#include <limits>
#include <utility>

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
      streams_(streams) {
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

void SimRuntime::Send(NodeId from, NodeId to, Transfer transfer) {
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
  network_.Start(flow,
                 [this, from, to, transfer = std::move(transfer)](const sim::FlowResult& result) {
                   OnFlowDone(from, to, transfer, result);
                 });
}

void SimRuntime::OnFlowDone(NodeId from, NodeId to, const Transfer& transfer,
                            const sim::FlowResult& result) {
  const auto seconds = [](const std::optional<sim::Time>& t) {
    return t ? sim::ToSeconds(*t) : std::numeric_limits<double>::quiet_NaN();
  };
  analysis::FlowRecord record;
  record.flow = result.id;
  record.from = from;
  record.to = to;
  record.message = Name(transfer.message);
  record.round = RoundOf(transfer.message);
  record.start_s = sim::ToSeconds(result.start);
  record.end_s = sim::ToSeconds(result.end);
  record.bytes = result.delivered_bytes;
  record.wire_bytes = result.wire_bytes;
  record.retransmitted_bytes = result.retransmitted_bytes;
  record.retransmissions = result.retransmissions;
  record.drops = result.dropped_packets;
  record.rtt_min_s = seconds(result.rtt_min);
  record.rtt_mean_s = seconds(result.rtt_mean);
  const double duration = record.end_s - record.start_s;
  record.goodput_bps = duration > 0 ? 8.0 * static_cast<double>(record.bytes) / duration : 0;
  record.outcome = sim::Name(result.outcome);
  recorder_.Record(record);

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
  if (result.outcome == sim::FlowOutcome::kDone) {
    At(to).on_message(from, transfer.message);
    if (transfer.delivered) transfer.delivered();
    return;
  }
  const std::string reason =
      fmt::format("{} {}: the transfer {} after {} bytes", Name(transfer.message),
                  RoundOf(transfer.message), sim::Name(result.outcome), result.delivered_bytes);
  if (At(from).on_lost) At(from).on_lost(to, reason);
  if (At(to).on_lost) At(to).on_lost(from, reason);
}

}  // namespace spes::trainer
