// CUBIC with the slow-start exit of Linux.
#pragma once

#include <ns3/sequence-number.h>
#include <ns3/tcp-cubic.h>

#include <cstdint>
#include <optional>

namespace spes::sim {

// ns-3's CUBIC leaves slow start when the round trip has doubled, that is, when a queue of one
// bandwidth-delay product is full and has begun to drop. Linux (net/ipv4/tcp_cubic.c,
// hystart_update, 6.x) leaves at an eighth more, between 4 and 16 ms, or when the acknowledgements
// of one window come in a train of half a round trip; ns-3's own detection is switched off.
class LinuxCubic : public ns3::TcpCubic {
 public:
  // Once, after ns3::CreateObject, which sets all attributes to their defaults. `factor`: segments
  // of real size that one of ours stands for.
  virtual void Configure(int factor);

  void PktsAcked(ns3::Ptr<ns3::TcpSocketState> tcb, std::uint32_t segments,
                 const ns3::Time& rtt) override;
  void CongestionStateSet(ns3::Ptr<ns3::TcpSocketState> tcb,
                          ns3::TcpSocketState::TcpCongState_t state) override;
  ns3::Ptr<ns3::TcpCongestionOps> Fork() override;

  // The connection idles: the curve stands still (cubictcp_cwnd_event of Linux) until Resume, which
  // may be in another timeline.
  void Rest();
  void Resume();

 protected:
  int factor_ = 1;

 private:
  void NewRound(const ns3::TcpSocketState& tcb);
  void HyStart(ns3::TcpSocketState& tcb, std::int64_t rtt);

  // All times in ns.
  std::int64_t rtt_min_ = 0, round_start_ = -1, last_ack_ = 0, round_rtt_min_ = 0;
  int samples_ = 0;  // in this round
  bool found_ = false;
  std::optional<ns3::Time> age_;  // of the curve, while it rests
  ns3::SequenceNumber32 round_end_;
};

}  // namespace spes::sim
