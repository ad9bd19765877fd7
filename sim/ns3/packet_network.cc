#include "sim/ns3/packet_network.h"

#include <ns3/simulator.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

#include "sim/ns3/connection.h"
#include "sim/ns3/fast_forward.h"
#include "sim/ns3/fast_tx_buffer.h"
#include "sim/ns3/link_queue.h"
#include "sim/ns3/simulator_claim.h"
#include "sim/ns3/step_simulator.h"
#include "sim/ns3/tcp_stack.h"
#include "sim/seeds.h"
#include "sim/tcp_laws.h"

namespace spes::sim {
namespace {

constexpr int kLargestSegment = 65000;  // bytes; lengths in headers are 16 bits
constexpr auto kWallSlice = std::chrono::milliseconds(100);
// What a receive window, twice as large, can announce: 65535 bytes, scaled by 2^14 (RFC 7323).
constexpr double kLargestBuffer = 65535.0 * (1 << 13);

// How many segments become one: at most `most`, and no more than leave a transfer `of_transfer` and
// a window (the bandwidth-delay product, or what random loss allows) `of_window` segments, so that
// what is made coarse stays fine beside it.
struct Coarseness {
  int most = 1;
  double of_transfer = 1, of_window = 1;
};

class PacketNetwork : public Network {
 public:
  PacketNetwork(const Topology& topology, const TcpConfig& tcp, const Coarseness& coarseness,
                bool fast_forward)
      : graph_(topology, tcp),
        tcp_(tcp),
        coarseness_(coarseness),
        stack_([this](const ns3::Ptr<ns3::Packet>& packet, std::uint32_t address) {
          const auto found = connections_.find(address / 2);
          if (found != connections_.end()) found->second->Send(packet, address % 2 == 0);
        }) {
    ns3::Simulator::Run();  // ends ns-3's start-up, in which it keeps a list of all times
    LinkFastTxBuffer();
    if (fast_forward) {
      fast_forward_ =
          std::make_unique<FastForward>(*simulator_, graph_, queues_, tcp_.segment_bytes);
    }
    for (std::size_t i = 0; i < graph_.links().size(); ++i) {
      queues_.emplace_back(graph_.links()[i], WireBytes(tcp.segment_bytes), LinkSeed(tcp.seed, i));
    }
  }

  ~PacketNetwork() override {
    for (auto& [id, active] : flows_) Close(active);
    for (auto& [active, result] : ended_) Close(active);
  }

  Time Now() const override { return Time(static_cast<std::int64_t>(simulator_->NowTs())); }

  void Prepare(int from, int to, int streams) override {
    CheckFlow({.from = from, .to = to, .streams = streams}, graph_);
    met_.insert(std::minmax(from, to));
  }

  FlowId Start(const Flow& flow, OnDone done) override {
    CheckFlow(flow, graph_);
    const FlowId id = next_flow_++;
    Active& active = flows_[id];
    active.flow = flow;
    active.done = std::move(done);
    active.start = Now();
    if (flow.bytes == 0) {
      const Time one_way = graph_.OneWay(flow.from, flow.to, Now());
      active.timer = ns3::Simulator::Schedule(ns3::TimeStep(one_way.count()),
                                              [this, id] { End(id, FlowOutcome::kDone); });
      return id;
    }
    active.timeline = fast_forward_ ? simulator_->AddTimeline() : 0;
    for (int i = 0; i < flow.streams; ++i) {
      const std::int64_t bytes =
          flow.bytes / flow.streams + (i < flow.bytes % flow.streams ? 1 : 0);
      if (bytes > 0) Open(id, active, bytes);
    }
    if (fast_forward_ && flow.traffic_class == TrafficClass::kBulk) {
      fast_forward_->Add({.id = id,
                          .streams = active.streams,
                          .timeline = active.timeline,
                          .there = graph_.Route(flow.from, flow.to),
                          .back = graph_.Route(flow.to, flow.from),
                          .loss = graph_.PathLoss(flow.from, flow.to)});
    }
    met_.insert(std::minmax(flow.from, flow.to));
    WatchForStall(id, active, tcp_.stall_timeout);
    return id;
  }

  void Cancel(FlowId id) override { End(id, FlowOutcome::kCancelled); }

  std::optional<Time> NextEvent() const override {
    if (!ended_.empty()) return Now();
    if (flows_.empty()) return std::nullopt;
    const auto next = simulator_->NextTs();
    return next ? Time(static_cast<std::int64_t>(*next)) : Now();
  }

  Time AdvanceTo(Time t) override {
    if (t < Now()) throw std::logic_error("virtual time cannot go back");
    const auto until = std::chrono::steady_clock::now() + kWallSlice;
    for (int events = 1;; ++events) {
      if (!ended_.empty()) {
        Report();
        if (Now() < t) return Now();
        continue;
      }
      const auto next = simulator_->NextTs();
      if (!next || Time(static_cast<std::int64_t>(*next)) > t) {
        if (t != kNever) simulator_->SkipTo(static_cast<std::uint64_t>(t.count()));
        return Now();
      }
      if (t == kNever && flows_.empty()) return Now();
      simulator_->RunOne();
      if (events % 256 == 0 && std::chrono::steady_clock::now() > until) return Now();
    }
  }

  const LinkGraph& graph() const override { return graph_; }

  std::vector<LinkUsage> Usage() const override {
    if (fast_forward_) fast_forward_->Settle();
    std::vector<LinkUsage> usage;
    for (const LinkQueue& queue : queues_) {
      usage.push_back({queue.WireBytesBy(Now().count()), queue.dropped_packets()});
    }
    return usage;
  }

 private:
  struct Active {
    Flow flow;
    OnDone done;
    Time start{0};
    int timeline = 0;
    std::vector<std::shared_ptr<Connection>> streams;
    std::vector<std::uint32_t> connection_ids;
    ns3::EventId timer;  // end of an empty flow, or watch for a stall
  };

  Path PathBetween(int a, int b) {
    Path path;
    for (const int link : graph_.Route(a, b)) path.push_back(&queues_[link]);
    return path;
  }

  // Buffers that let one flow fill its bottleneck and the queue there, and not overflow it: what an
  // operating system's autotuning aims at, and ns-3 pays dearly for every overflow.
  TcpSettings Settings(const Path& path, Time longest_rtt, int factor) const {
    const Link& bottleneck = (*std::ranges::min_element(path, {}, [](const LinkQueue* q) {
                               return q->link().bps;
                             }))->link();
    const double wire = bottleneck.bps / 8 * ToSeconds(longest_rtt) + bottleneck.queue_bytes;
    const int segment = tcp_.segment_bytes * factor;
    const int window = std::max(1, (tcp_.initial_window + factor / 2) / factor);
    const auto segments = static_cast<std::int64_t>(std::clamp(
        wire / (WireBytes(tcp_.segment_bytes) * factor), 2.0 * window, kLargestBuffer / segment));
    return {.congestion = tcp_.congestion,
            .segment_bytes = segment,
            .segment_factor = factor,
            .initial_window = window,
            .send_buffer = segments * segment,
            .receive_buffer = 2 * segments * segment};
  }

  // How many ordinary segments each segment of a connection with so much payload stands for.
  int SegmentFactor(const Flow& flow, std::int64_t bytes, Time rtt) const {
    const double loss = graph_.PathLoss(flow.from, flow.to), segment = tcp_.segment_bytes;
    double window =
        graph_.BottleneckBps(flow.from, flow.to) / 8 * ToSeconds(rtt) / flow.streams / segment;
    if (loss > 0) {
      window = std::min(window, std::max(RenoWindow(loss), CubicWindow(loss, ToSeconds(rtt))));
    }
    const double most = std::min({static_cast<double>(coarseness_.most),
                                  static_cast<double>(bytes) / segment / coarseness_.of_transfer,
                                  window / coarseness_.of_window});
    return std::max(1, static_cast<int>(most));
  }

  std::optional<SocketMemory> Remembered(const Flow& flow, std::size_t stream) const {
    const auto found = memories_.find({flow.from, flow.to});
    if (!Remembers(flow) || found == memories_.end() || stream >= found->second.size()) return {};
    return found->second[stream];
  }

  bool Remembers(const Flow& flow) const {
    return tcp_.after_idle == "remembered" && !flow.stranger &&
           flow.traffic_class == TrafficClass::kBulk;
  }

  // A transfer that did not get through leaves broken connections.
  void Remember(const Active& active, FlowOutcome outcome) {
    if (!Remembers(active.flow) || active.flow.bytes == 0) return;
    auto& memories = memories_[{active.flow.from, active.flow.to}];
    memories.clear();
    if (outcome != FlowOutcome::kDone) return;
    for (const auto& stream : active.streams) memories.push_back(stream->Memory());
  }

  void Open(FlowId id, Active& active, std::int64_t bytes) {
    const Flow& flow = active.flow;
    const Path there = PathBetween(flow.from, flow.to);
    const Time rtt = graph_.Rtt(flow.from, flow.to, Now());
    const int factor = SegmentFactor(flow, bytes, rtt);
    const ConnectionPlan plan{
        .id = next_connection_++,
        .tcp = Settings(there, graph_.LongestRttFrom(flow.from, flow.to, Now()), factor),
        .there = there,
        .back = PathBetween(flow.to, flow.from),
        .timeline = active.timeline,
        .rtt = rtt,
        .control = flow.traffic_class == TrafficClass::kControl,
        .known = met_.contains(std::minmax(flow.from, flow.to)),
        .memory = Remembered(flow, active.streams.size()),
        .bytes = bytes,
    };
    active.streams.push_back(std::make_shared<Connection>(
        *simulator_, plan,
        Connection::Events{.progress = [this, id] { Progress(id); },
                           .failed = [this, id] { End(id, FlowOutcome::kFailed); }}));
    active.connection_ids.push_back(plan.id);
    connections_[plan.id] = active.streams.back().get();
    active.streams.back()->Open(stack_);
  }

  void Progress(FlowId id) {
    const auto found = flows_.find(id);
    if (found == flows_.end()) return;
    Active& active = found->second;
    std::int64_t delivered = 0;
    for (const auto& stream : active.streams) delivered += stream->counts().delivered_bytes;
    if (delivered == active.flow.bytes) End(id, FlowOutcome::kDone);
  }

  void WatchForStall(FlowId id, Active& active, Time wait) {
    const StepSimulator::Within within(*simulator_, 0);
    active.timer = ns3::Simulator::Schedule(ns3::TimeStep(wait.count()), [this, id] {
      Active& active = flows_.at(id);
      Time progress = active.start;
      for (const auto& stream : active.streams)
        progress = std::max(progress, stream->progress_at());
      if (fast_forward_ && fast_forward_->Passes(id)) progress = Now();
      const Time left = progress + tcp_.stall_timeout - Now();
      if (left <= Time{0}) {
        End(id, FlowOutcome::kStalled);
      } else {
        WatchForStall(id, active, left);
      }
    });
  }

  // Takes the flow out; its sockets, which may be calling us, are closed in Report.
  void End(FlowId id, FlowOutcome outcome) {
    const auto found = flows_.find(id);
    if (found == flows_.end()) return;
    Active& active = found->second;
    active.timer.Cancel();
    if (fast_forward_) fast_forward_->Remove(id);
    Remember(active, outcome);
    FlowResult result{.id = id,
                      .flow = active.flow,
                      .start = active.start,
                      .end = Now(),
                      .rtt_min = {},
                      .rtt_mean = {},
                      .outcome = outcome};
    std::int64_t samples = 0;
    Time rtt_min = kNever, rtt_sum{0};
    for (const auto& stream : active.streams) {
      const ConnectionCounts& counts = stream->counts();
      result.delivered_bytes += counts.delivered_bytes;
      result.wire_bytes += counts.wire_bytes;
      result.retransmitted_bytes += counts.retransmitted_bytes;
      result.retransmissions += counts.retransmissions;
      result.dropped_packets += counts.dropped_packets;
      samples += counts.rtt_samples;
      rtt_min = std::min(rtt_min, counts.rtt_min);
      rtt_sum += counts.rtt_sum;
    }
    if (samples > 0) {
      result.rtt_min = rtt_min;
      result.rtt_mean = rtt_sum / samples;
    }
    ended_.emplace_back(std::move(active), result);
    flows_.erase(found);
  }

  void Report() {
    while (!ended_.empty()) {
      auto [active, result] = std::move(ended_.front());
      ended_.pop_front();
      Close(active);
      if (active.done) active.done(result);
    }
  }

  void Close(Active& active) {
    for (const auto& stream : active.streams) stream->Close();
    for (const std::uint32_t id : active.connection_ids) connections_.erase(id);
  }

  const LinkGraph graph_;
  const TcpConfig tcp_;
  const Coarseness coarseness_;
  const SimulatorClaim<StepSimulator> simulator_;
  std::deque<LinkQueue> queues_;  // [link of graph_]
  std::unique_ptr<FastForward> fast_forward_;
  std::map<std::uint32_t, Connection*> connections_;
  TcpStack stack_;
  std::set<std::pair<int, int>> met_;  // pairs of hosts with open connections
  std::map<std::pair<int, int>, std::vector<SocketMemory>> memories_;  // [from, to][stream]
  FlowId next_flow_ = 1;
  std::uint32_t next_connection_ = 1;
  std::map<FlowId, Active> flows_;
  std::deque<std::pair<Active, FlowResult>> ended_;
};

}  // namespace

std::unique_ptr<Network> MakePacketNetwork(const Topology& topology, const TcpConfig& tcp) {
  return std::make_unique<PacketNetwork>(topology, tcp, Coarseness{}, false);
}

std::unique_ptr<Network> MakeCoarseNetwork(const Topology& topology, const TcpConfig& tcp) {
  return std::make_unique<PacketNetwork>(
      topology, tcp,
      Coarseness{.most = std::min(tcp.coarse_factor, kLargestSegment / tcp.segment_bytes),
                 .of_transfer = 4000,
                 .of_window = 16},
      false);
}

std::unique_ptr<Network> MakeHybridNetwork(const Topology& topology, const TcpConfig& tcp) {
  return std::make_unique<PacketNetwork>(
      topology, tcp,
      Coarseness{.most = std::min(20, kLargestSegment / tcp.segment_bytes),
                 .of_transfer = 40'000,
                 .of_window = 64},
      true);
}

}  // namespace spes::sim
