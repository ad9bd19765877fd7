#include "sim/ns3/tcp_stack.h"

#include <ns3/inet-socket-address.h>
#include <ns3/ipv4-end-point.h>
#include <ns3/ipv4-header.h>
#include <ns3/ipv4-l3-protocol.h>
#include <ns3/ipv4-route.h>
#include <ns3/ipv4-routing-protocol.h>
#include <ns3/rtt-estimator.h>
#include <ns3/simulator.h>
#include <ns3/tcp-linux-reno.h>
#include <ns3/tcp-prr-recovery.h>
#include <ns3/tcp-tx-buffer.h>
#include <ns3/traffic-control-layer.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "sim/ns3/coarse_congestion.h"
#include "sim/ns3/linux_cubic.h"

namespace spes::sim {
namespace {

constexpr std::uint16_t kPort = 1;

// TCP asks for a route when it opens a connection, to learn its own address, and with every
// segment, where nothing needs the answer.
class Routes : public ns3::Ipv4RoutingProtocol {
 public:
  ns3::Ptr<ns3::Ipv4Route> RouteOutput(ns3::Ptr<ns3::Packet> packet, const ns3::Ipv4Header& header,
                                       ns3::Ptr<ns3::NetDevice>,
                                       ns3::Socket::SocketErrno&) override {
    if (packet) return nullptr;
    const auto route = ns3::Create<ns3::Ipv4Route>();
    route->SetDestination(header.GetDestination());
    route->SetSource(ns3::Ipv4Address(header.GetDestination().Get() ^ 1));
    return route;
  }
  bool RouteInput(ns3::Ptr<const ns3::Packet>, const ns3::Ipv4Header&,
                  ns3::Ptr<const ns3::NetDevice>, const UnicastForwardCallback&,
                  const MulticastForwardCallback&, const LocalDeliverCallback&,
                  const ErrorCallback&) override {
    return false;
  }
  void NotifyInterfaceUp(std::uint32_t) override {}
  void NotifyInterfaceDown(std::uint32_t) override {}
  void NotifyAddAddress(std::uint32_t, ns3::Ipv4InterfaceAddress) override {}
  void NotifyRemoveAddress(std::uint32_t, ns3::Ipv4InterfaceAddress) override {}
  void SetIpv4(ns3::Ptr<ns3::Ipv4>) override {}
  void PrintRoutingTable(ns3::Ptr<ns3::OutputStreamWrapper>, ns3::Time::Unit) const override {}
};

ns3::Ptr<ns3::TcpCongestionOps> MakeCongestionControl(const std::string& name, int factor) {
  if (name == "reno") {
    if (factor > 1) return ns3::CreateObject<CoarseReno>(factor);
    return ns3::CreateObject<ns3::TcpLinuxReno>();
  }
  ns3::Ptr<LinuxCubic> cubic = ns3::CreateObject<LinuxCubic>();
  if (factor > 1) cubic = ns3::CreateObject<CoarseCubic>();
  cubic->Configure(factor);
  return cubic;
}

}  // namespace

void TcpSocket::Configure(const TcpSettings& settings) {
  SetSegSize(static_cast<std::uint32_t>(settings.segment_bytes));
  SetInitialCwnd(static_cast<std::uint32_t>(settings.initial_window));
  SetSndBufSize(static_cast<std::uint32_t>(settings.send_buffer));
  SetRcvBufSize(static_cast<std::uint32_t>(settings.receive_buffer));
  SetTcpNoDelay(true);  // or the last, partial segment waits for a round trip
  // As Linux: a time-out comes 200 ms after the smoothed round trip at the earliest (the "clock
  // granularity" is the least that is added to it), and an acknowledgement waits for 40 ms at most.
  // With the time-out as near to the round trip as RFC 6298 allows, a delayed acknowledgement is
  // taken for a loss, again and again.
  SetMinRto(ns3::MilliSeconds(200));
  SetClockGranularity(ns3::MilliSeconds(200));
  SetDelAckTimeout(ns3::MilliSeconds(40));
  // We end connections that make no progress ourselves; TCP would do so silently.
  SetDataRetries(std::numeric_limits<std::uint32_t>::max());
}

void TcpSocket::Deliver(const ns3::Ptr<ns3::Packet>& packet) {
  if (m_endPoint == nullptr) return;
  ns3::Ipv4Header header;
  header.SetSource(ns3::Ipv4Address(m_endPoint->GetLocalAddress().Get() ^ 1));
  header.SetDestination(m_endPoint->GetLocalAddress());
  ForwardUp(packet, header, kPort, nullptr);
}

void TcpSocket::KnowRtt(Time rtt) {
  m_history.clear();
  m_rtt->Reset();
  m_rtt->Measurement(ns3::TimeStep(rtt.count()));
  m_rto = std::max(m_rtt->GetEstimate() + std::max(m_clockGranularity, m_rtt->GetVariation() * 4),
                   m_minRto);
  m_tcb->m_srtt = m_rtt->GetEstimate();
  m_tcb->m_minRtt = m_rtt->GetEstimate();
  m_tcb->m_lastRtt = m_rtt->GetEstimate();
}

void TcpSocket::Resume(const SocketMemory& memory, const WarmStart& start) {
  const double segment = m_tcb->m_segmentSize;
  const auto whole = [segment](double bytes) {
    constexpr double kMost = std::numeric_limits<std::uint32_t>::max();
    return static_cast<std::uint32_t>(std::clamp(bytes, segment, kMost));
  };
  m_tcb->m_cWnd = whole(std::floor(start.window / segment) * segment);
  m_tcb->m_cWndInfl = m_tcb->m_cWnd;
  m_tcb->m_ssThresh = whole(start.threshold);
  if (memory.segment_bytes != m_tcb->m_segmentSize) return;
  SetCongestionControlAlgorithm(memory.congestion);
  if (const auto cubic = ns3::DynamicCast<LinuxCubic>(memory.congestion)) cubic->Resume();
}

SocketMemory TcpSocket::Memory(Time now) const {
  const std::uint32_t threshold = m_tcb->m_ssThresh;
  SocketMemory memory{.path = {.window = static_cast<double>(m_tcb->m_cWnd),
                               .end = now,
                               .timeout = Time(m_rto.Get().GetTimeStep())},
                      .congestion = m_congestionControl,
                      .segment_bytes = m_tcb->m_segmentSize};
  if (threshold != std::numeric_limits<std::uint32_t>::max()) memory.path.threshold = threshold;
  if (const auto cubic = ns3::DynamicCast<LinuxCubic>(m_congestionControl)) cubic->Rest();
  return memory;
}

void TcpSocket::MakeFine(const TcpSettings& settings) {
  const int segment = settings.segment_bytes / settings.segment_factor;
  m_tcb->m_segmentSize = static_cast<std::uint32_t>(segment);
  m_txBuffer->SetSegmentSize(static_cast<std::uint32_t>(segment));
  SetCongestionControlAlgorithm(MakeCongestionControl(settings.congestion, 1));
}

// ns-3 knows round trips to a millisecond, that of its timestamps; Linux keeps the time at which it
// sent each segment, and takes that of the newest one acknowledged.
void TcpSocket::EstimateRtt(const ns3::TcpHeader& header) {
  std::int64_t sent = -1;
  for (const ns3::RttHistory& segment : m_history) {
    if (header.GetAckNumber() < segment.seq + ns3::SequenceNumber32(segment.count)) break;
    if (!segment.retx) sent = segment.time.GetTimeStep();
  }
  TcpSocketBase::EstimateRtt(header);
  if (sent >= 0) m_tcb->m_lastRtt = ns3::Simulator::Now() - ns3::TimeStep(sent);
}

void TcpSocket::Abandon() {
  abandoned_ = true;
  forked_ = nullptr;
  SetAcceptCallback(ns3::MakeNullCallback<bool, ns3::Ptr<ns3::Socket>, const ns3::Address&>(),
                    ns3::MakeNullCallback<void, ns3::Ptr<ns3::Socket>, const ns3::Address&>());
  const auto none = ns3::MakeNullCallback<void, ns3::Ptr<ns3::Socket>>();
  SetConnectCallback(none, none);
  SetCloseCallbacks(none, none);
  SetRecvCallback(none);
  SetSendCallback(ns3::MakeNullCallback<void, ns3::Ptr<ns3::Socket>, std::uint32_t>());
  CancelAllTimers();
  m_state = CLOSED;
  DeallocateEndPoint();
  ns3::Simulator::Schedule(ns3::TimeStep(1), [self = ns3::Ptr<TcpSocket>(this)] {});
}

void TcpSocket::CompleteFork(ns3::Ptr<ns3::Packet> packet, const ns3::TcpHeader& header,
                             const ns3::Address& from, const ns3::Address& to) {
  if (!abandoned_) TcpSocketBase::CompleteFork(packet, header, from, to);
}

ns3::Ptr<ns3::TcpSocketBase> TcpSocket::Fork() {
  const ns3::Ptr<TcpSocket> copy = ns3::CopyObject(ns3::Ptr<TcpSocket>(this));
  if (forked_) forked_(copy);
  return copy;
}

TcpStack::TcpStack(Send send)
    : send_(std::move(send)),
      node_(ns3::CreateObject<ns3::Node>()),
      tcp_(ns3::CreateObject<ns3::TcpL4Protocol>()) {
  const auto ip = ns3::CreateObject<ns3::Ipv4L3Protocol>();
  ip->SetRoutingProtocol(ns3::CreateObject<Routes>());
  node_->AggregateObject(ns3::CreateObject<ns3::TrafficControlLayer>());
  node_->AggregateObject(ip);
  node_->AggregateObject(tcp_);
  tcp_->SetDownTarget(ns3::IpL4Protocol::DownTargetCallback(
      [this](const ns3::Ptr<ns3::Packet>& packet, ns3::Ipv4Address from, ns3::Ipv4Address,
             std::uint8_t, const ns3::Ptr<ns3::Ipv4Route>&) { send_(packet, from.Get()); }));
}

ns3::Ptr<TcpSocket> TcpStack::MakeSocket(std::uint32_t address, const TcpSettings& settings) {
  const auto socket = ns3::CreateObject<TcpSocket>();
  socket->SetNode(node_);
  socket->SetTcp(tcp_);
  socket->SetRtt(ns3::CreateObject<ns3::RttMeanDeviation>());
  socket->Configure(settings);
  socket->SetCongestionControlAlgorithm(
      MakeCongestionControl(settings.congestion, settings.segment_factor));
  socket->SetRecoveryAlgorithm(ns3::CreateObject<ns3::TcpPrrRecovery>());
  socket->Bind(At(address));
  return socket;
}

ns3::Address TcpStack::At(std::uint32_t address) {
  return ns3::InetSocketAddress(ns3::Ipv4Address(address), kPort);
}

}  // namespace spes::sim
