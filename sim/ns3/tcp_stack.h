// ns-3's TCP without the layers below it: segments go straight to our links.
#pragma once

#include <ns3/ipv4-address.h>
#include <ns3/node.h>
#include <ns3/packet.h>
#include <ns3/tcp-congestion-ops.h>
#include <ns3/tcp-l4-protocol.h>
#include <ns3/tcp-socket-base.h>

#include <cstdint>
#include <functional>
#include <string>

#include "sim/path_memory.h"
#include "sim/units.h"

namespace spes::sim {

struct TcpSettings {
  std::string congestion;  // as TcpConfig
  int segment_bytes = 0;
  int segment_factor = 1;  // segments of real size that one of ours stands for
  int initial_window = 0;  // segments
  std::int64_t send_buffer = 0;
  std::int64_t receive_buffer = 0;
};

// What a connection has learnt, its congestion control's own state included.
struct SocketMemory {
  PathMemory path;
  ns3::Ptr<ns3::TcpCongestionOps> congestion;
  std::uint32_t segment_bytes = 0;  // that it counts in
};

// A socket of ns-3 whose segments reach it directly instead of through an IP layer.
class TcpSocket : public ns3::TcpSocketBase {
 public:
  // The forked socket of a listener, before it has answered.
  using Forked = std::function<void(ns3::Ptr<TcpSocket>)>;

  void Configure(const TcpSettings& settings);
  void SetForked(Forked forked) { forked_ = std::move(forked); }

  // Hands over a segment from the network. No effect after Abandon.
  void Deliver(const ns3::Ptr<ns3::Packet>& packet);

  // Sets the round-trip estimate to what earlier traffic on this connection has shown.
  void KnowRtt(Time rtt);

  // Goes on from what an earlier transfer on this connection has learnt. After KnowRtt, before the
  // first payload.
  void Resume(const SocketMemory& memory, const WarmStart& start);
  // For a transfer that ends at `now`. The socket must send nothing from then on.
  SocketMemory Memory(Time now) const;

  // From now on sends segments of real size: for a connection whose segments stood for several.
  // What is on its way stays as it is.
  void MakeFine(const TcpSettings& settings);

  // Ends at once without a word to the peer and without any callback; the socket lives on for as
  // long as ns-3 has plain pointers to it in its queue, which is until time goes on.
  void Abandon();

 protected:
  void EstimateRtt(const ns3::TcpHeader& header) override;
  ns3::Ptr<ns3::TcpSocketBase> Fork() override;
  void CompleteFork(ns3::Ptr<ns3::Packet> packet, const ns3::TcpHeader& header,
                    const ns3::Address& from, const ns3::Address& to) override;

 private:
  Forked forked_;
  bool abandoned_ = false;
};

// Where all sockets live: one ns-3 node. A connection is told apart by its addresses, which no IP
// layer reads: 2·id is the sender's end of connection `id`, 2·id + 1 the receiver's.
class TcpStack {
 public:
  // A segment that TCP sends, with its header, from the end of a connection with this address.
  using Send = std::function<void(ns3::Ptr<ns3::Packet>, std::uint32_t from_address)>;

  explicit TcpStack(Send send);

  // Bound to the address, not connected.
  ns3::Ptr<TcpSocket> MakeSocket(std::uint32_t address, const TcpSettings& settings);

  static ns3::Address At(std::uint32_t address);

 private:
  Send send_;
  ns3::Ptr<ns3::Node> node_;
  ns3::Ptr<ns3::TcpL4Protocol> tcp_;
};

}  // namespace spes::sim
