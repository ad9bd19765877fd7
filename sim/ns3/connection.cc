#include "sim/ns3/connection.h"

#include <ns3/nstime.h>
#include <ns3/simulator.h>

#include <algorithm>
#include <array>
#include <utility>

namespace spes::sim {
namespace {

// IPv4 header and the two bytes of PPP.
constexpr int kHeaderBelowTcp = 22;
constexpr std::size_t kTcpHeaderBytes = 20;  // without options

struct TcpFields {
  std::uint32_t sequence;
  std::uint32_t acknowledgement;
  int header_bytes;
};

TcpFields Read(const ns3::Ptr<ns3::Packet>& packet) {
  std::array<std::uint8_t, kTcpHeaderBytes> raw;
  packet->CopyData(raw.data(), raw.size());
  const auto word = [&](int at) {
    return std::uint32_t{raw[at]} << 24 | std::uint32_t{raw[at + 1]} << 16 |
           std::uint32_t{raw[at + 2]} << 8 | raw[at + 3];
  };
  return {word(4), word(8), (raw[12] >> 4) * 4};
}

}  // namespace

Connection::Connection(StepSimulator& simulator, ConnectionPlan plan, Events events)
    : simulator_(simulator),
      plan_(std::move(plan)),
      events_(std::move(events)),
      there_{plan_.there, std::vector<Lane>(plan_.there.size()), true},
      back_{plan_.back, std::vector<Lane>(plan_.back.size()), false},
      segment_bytes_(plan_.tcp.segment_bytes),
      unsent_(plan_.bytes) {}

void Connection::Open(TcpStack& stack) {
  const StepSimulator::Within within(simulator_, plan_.timeline);
  const std::uint32_t at_sender = 2 * plan_.id, at_receiver = 2 * plan_.id + 1;
  listener_ = stack.MakeSocket(at_receiver, plan_.tcp);
  listener_->SetForked([this](const ns3::Ptr<TcpSocket>& socket) { receiver_ = socket; });
  listener_->SetAcceptCallback(
      ns3::MakeNullCallback<bool, ns3::Ptr<ns3::Socket>, const ns3::Address&>(),
      ns3::Callback<void, ns3::Ptr<ns3::Socket>, const ns3::Address&>(
          [this](const auto&, const ns3::Address&) {
            established_ = true;
            receiver_->SetRecvCallback(
                ns3::Callback<void, ns3::Ptr<ns3::Socket>>([this](const auto&) { Drain(); }));
            if (plan_.known) receiver_->KnowRtt(plan_.rtt);
          }));
  listener_->Listen();

  using Notice = ns3::Callback<void, ns3::Ptr<ns3::Socket>>;
  const Notice failed([this](const auto&) { events_.failed(); });
  sender_ = stack.MakeSocket(at_sender, plan_.tcp);
  sender_->SetConnectCallback(Notice([this](const auto&) {
                                if (plan_.known) sender_->KnowRtt(plan_.rtt);
                                if (plan_.memory) Resume(*plan_.memory);
                                Fill();
                              }),
                              failed);
  sender_->SetSendCallback(ns3::Callback<void, ns3::Ptr<ns3::Socket>, std::uint32_t>(
      [this](const auto&, std::uint32_t) { Fill(); }));
  sender_->SetCloseCallbacks(failed, failed);
  sender_->Connect(TcpStack::At(at_receiver));
}

void Connection::Close() {
  const StepSimulator::Within within(simulator_, plan_.timeline);
  for (ns3::Ptr<TcpSocket>* socket : {&sender_, &listener_, &receiver_}) {
    if (!*socket) continue;
    (*socket)->Abandon();
    *socket = nullptr;
  }
}

void Connection::Resume(const SocketMemory& memory) {
  const double initial = static_cast<double>(plan_.tcp.initial_window) * plan_.tcp.segment_bytes;
  sender_->Resume(memory, AfterIdle(memory.path, Now(), initial));
}

// Whole segments only, so that none is sent half empty for want of the next few bytes.
void Connection::Fill() {
  while (unsent_ > 0) {
    const std::int64_t room = sender_->GetTxAvailable();
    const std::int64_t segment = segment_bytes_;
    const std::int64_t take = unsent_ <= room ? unsent_ : room / segment * segment;
    if (take <= 0) return;
    unsent_ -= take;
    sender_->Send(ns3::Create<ns3::Packet>(static_cast<std::uint32_t>(take)), 0);
  }
}

void Connection::Drain() {
  while (const ns3::Ptr<ns3::Packet> packet = receiver_->Recv(1u << 30, 0)) {
    if (packet->GetSize() == 0) return;
    counts_.delivered_bytes += packet->GetSize();
    delivered_at_ = ns3::Simulator::Now().GetTimeStep();
    progress_at_ = static_cast<std::int64_t>(simulator_.NowTs());
  }
  events_.progress();
}

void Connection::MakeFine() {
  const int fine = plan_.tcp.segment_bytes / plan_.tcp.segment_factor;
  if (segment_bytes_ == fine) return;
  segment_bytes_ = fine;
  const StepSimulator::Within within(simulator_, plan_.timeline);
  sender_->MakeFine(plan_.tcp);
}

void Connection::PassUnseen(const ConnectionCounts& passed) {
  unsent_ -= passed.delivered_bytes;
  if (passed.delivered_bytes > 0) progress_at_ = static_cast<std::int64_t>(simulator_.NowTs());
  counts_.delivered_bytes += passed.delivered_bytes;
  counts_.sent_bytes += passed.delivered_bytes;
  counts_.wire_bytes += passed.wire_bytes;
  counts_.acknowledgement_bytes += passed.acknowledgement_bytes;
  counts_.retransmitted_bytes += passed.retransmitted_bytes;
  counts_.retransmissions += passed.retransmissions;
  counts_.dropped_packets += passed.dropped_packets;
}

void Connection::Send(const ns3::Ptr<ns3::Packet>& packet, bool from_sender) {
  if (plan_.known && !established_) {
    // A handshake of the past: over before time goes on.
    ns3::Simulator::ScheduleNow(
        [self = shared_from_this(), packet, from_sender] { self->Deliver(packet, from_sender); });
    return;
  }
  const TcpFields tcp = Read(packet);
  const std::uint32_t payload = packet->GetSize() - static_cast<std::uint32_t>(tcp.header_bytes);
  // A segment that stands for several has as many headers; so has an acknowledgement of them.
  const std::int64_t real_size = plan_.tcp.segment_bytes / plan_.tcp.segment_factor;
  const int coarse = segment_bytes_ / static_cast<int>(real_size);
  const int headers =
      payload == 0 ? coarse : static_cast<int>((payload + real_size - 1) / real_size);
  const int wire_bytes = static_cast<int>(payload) + headers * (tcp.header_bytes + kHeaderBelowTcp);
  if (!from_sender) {
    counts_.acknowledgement_bytes += wire_bytes;
  } else {
    counts_.wire_bytes += wire_bytes;
    if (payload > 0) {
      const std::int64_t again = sequence_.Sent(tcp.sequence, payload);
      counts_.sent_bytes += payload - again;
      if (again > 0) {
        counts_.retransmitted_bytes += again;
        counts_.retransmissions += headers;
        timed_.reset();  // its acknowledgement would be ambiguous (Karn's algorithm, RFC 6298)
      } else if (!timed_) {
        timed_ = tcp.sequence + payload;
        timed_since_ = ns3::Simulator::Now().GetTimeStep();
      }
    }
  }
  Hop(from_sender ? there_ : back_, 0, {0, packet, wire_bytes, payload == 0 ? 1 : headers});
}

void Connection::Hop(Way& way, std::size_t hop, Flying&& segment) {
  const auto now = static_cast<std::int64_t>(simulator_.NowTs());
  LinkQueue& queue = *way.path[hop];
  const std::int64_t dropped = queue.dropped_packets();
  const auto at = queue.Send(now, segment.wire_bytes, plan_.control, segment.stands_for);
  if (!at) {
    if (way.to_receiver) counts_.dropped_packets += queue.dropped_packets() - dropped;
    return;
  }
  Lane& lane = way.lanes[hop];
  segment.at = *at - simulator_.Lag();
  if (!lane.empty()) segment.at = std::max(segment.at, lane.back().at);  // none overtakes another
  lane.push_back(std::move(segment));
  if (lane.size() > 1) return;
  ns3::Simulator::Schedule(ns3::TimeStep(lane.front().at - ns3::Simulator::Now().GetTimeStep()),
                           &Connection::Land, shared_from_this(), std::ref(way), hop);
}

void Connection::Land(Way& way, std::size_t hop) {
  const std::int64_t now = ns3::Simulator::Now().GetTimeStep();
  Lane& lane = way.lanes[hop];
  while (!lane.empty() && lane.front().at <= now) {
    Flying segment = std::move(lane.front());
    lane.pop_front();
    if (hop + 1 < way.path.size()) {
      Hop(way, hop + 1, std::move(segment));
    } else {
      Deliver(segment.packet, way.to_receiver);
    }
  }
  if (lane.empty()) return;
  ns3::Simulator::Schedule(ns3::TimeStep(lane.front().at - now), &Connection::Land,
                           shared_from_this(), std::ref(way), hop);
}

void Connection::Deliver(const ns3::Ptr<ns3::Packet>& packet, bool to_receiver) {
  if (to_receiver) {
    const ns3::Ptr<TcpSocket> socket = receiver_ ? receiver_ : listener_;
    if (socket) socket->Deliver(packet);
    return;
  }
  if (!sender_) return;
  if (timed_) TakeSample(Read(packet).acknowledgement);
  sender_->Deliver(packet);
}

void Connection::TakeSample(std::uint32_t acknowledged) {
  if (SequenceBefore(acknowledged, *timed_)) return;
  const Time rtt(ns3::Simulator::Now().GetTimeStep() - timed_since_);
  ++counts_.rtt_samples;
  counts_.rtt_min = std::min(counts_.rtt_min, rtt);
  counts_.rtt_sum += rtt;
  timed_.reset();
}

}  // namespace spes::sim
