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

void Connection::Open(TcpStack& stack) {
  const std::uint32_t at_sender = 2 * plan_.id, at_receiver = 2 * plan_.id + 1;
  unsent_ = plan_.bytes;
  listener_ = stack.MakeSocket(at_receiver, plan_.tcp);
  listener_->SetForked([this](ns3::Ptr<TcpSocket> socket) { receiver_ = socket; });
  listener_->SetAcceptCallback(
      ns3::MakeNullCallback<bool, ns3::Ptr<ns3::Socket>, const ns3::Address&>(),
      ns3::Callback<void, ns3::Ptr<ns3::Socket>, const ns3::Address&>([this](ns3::Ptr<ns3::Socket>,
                                                                             const ns3::Address&) {
        established_ = true;
        receiver_->SetRecvCallback(
            ns3::Callback<void, ns3::Ptr<ns3::Socket>>([this](ns3::Ptr<ns3::Socket>) { Drain(); }));
        if (plan_.known) receiver_->KnowRtt(plan_.rtt);
      }));
  listener_->Listen();

  using Notice = ns3::Callback<void, ns3::Ptr<ns3::Socket>>;
  const Notice failed([this](ns3::Ptr<ns3::Socket>) { events_.failed(); });
  sender_ = stack.MakeSocket(at_sender, plan_.tcp);
  sender_->SetConnectCallback(Notice([this](ns3::Ptr<ns3::Socket>) {
                                if (plan_.known) sender_->KnowRtt(plan_.rtt);
                                Fill();
                              }),
                              failed);
  sender_->SetSendCallback(ns3::Callback<void, ns3::Ptr<ns3::Socket>, std::uint32_t>(
      [this](ns3::Ptr<ns3::Socket>, std::uint32_t) { Fill(); }));
  sender_->SetCloseCallbacks(failed, failed);
  sender_->Connect(TcpStack::At(at_receiver));
}

void Connection::Close() {
  for (ns3::Ptr<TcpSocket>* socket : {&sender_, &listener_, &receiver_}) {
    if (!*socket) continue;
    (*socket)->Abandon();
    *socket = nullptr;
  }
}

// Whole segments only, so that none is sent half empty for want of the next few bytes.
void Connection::Fill() {
  while (unsent_ > 0) {
    const std::int64_t room = sender_->GetTxAvailable();
    const std::int64_t segment = plan_.tcp.segment_bytes;
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
  }
  events_.progress();
}

void Connection::Send(const ns3::Ptr<ns3::Packet>& packet, bool from_sender) {
  Segment segment{.packet = packet,
                  .connection = shared_from_this(),
                  .path = from_sender ? plan_.there : plan_.back,
                  .wire_bytes = static_cast<int>(packet->GetSize()) + kHeaderBelowTcp,
                  .to_receiver = from_sender,
                  .control = plan_.control};
  if (plan_.known && !established_) {
    // A handshake of the past: over before time goes on.
    ns3::Simulator::ScheduleNow(
        [self = shared_from_this(), segment]() mutable { self->Deliver(std::move(segment)); });
    return;
  }
  if (from_sender) {
    counts_.wire_bytes += segment.wire_bytes;
    const TcpFields tcp = Read(packet);
    const std::uint32_t payload = packet->GetSize() - static_cast<std::uint32_t>(tcp.header_bytes);
    if (payload > 0) {
      const std::int64_t again = sequence_.Sent(tcp.sequence, payload);
      if (again > 0) {
        counts_.retransmitted_bytes += again;
        ++counts_.retransmissions;
        timed_.reset();  // its acknowledgement would be ambiguous (Karn's algorithm, RFC 6298)
      } else if (!timed_) {
        timed_ = tcp.sequence + payload;
        timed_since_ = ns3::Simulator::Now().GetTimeStep();
      }
    }
  }
  Link& link = *segment.path->front();
  if (!link.Send(std::move(segment))) CountDrop(segment);
}

void Connection::Deliver(Segment&& segment) {
  if (segment.to_receiver) {
    const ns3::Ptr<TcpSocket> socket = receiver_ ? receiver_ : listener_;
    if (socket) socket->Deliver(segment.packet);
    return;
  }
  if (!sender_) return;
  if (timed_) TakeSample(Read(segment.packet).acknowledgement);
  sender_->Deliver(segment.packet);
}

void Connection::CountDrop(const Segment& segment) {
  if (segment.to_receiver) ++counts_.dropped_packets;
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
