#include "sim/ns3/linux_cubic.h"

#include <ns3/boolean.h>
#include <ns3/simulator.h>

#include <algorithm>
#include <limits>

namespace spes::sim {
namespace {

constexpr std::int64_t kMs = 1'000'000;
constexpr std::uint32_t kLowWindow = 16;  // segments; no detection below
constexpr int kSamples = 8;
constexpr std::int64_t kTrainGap = 2 * kMs;
// What Linux allows for the aggregation of acknowledgements: this much up to some 2 Gbps.
constexpr std::int64_t kAckDelay = 1 * kMs;

// Since when its curve runs, which ns-3 keeps to itself: an explicit instantiation may name it.
ns3::Time& EpochStart(ns3::TcpCubic& cubic);
template <ns3::Time ns3::TcpCubic::*member>
struct ShowEpochStart {
  friend ns3::Time& EpochStart(ns3::TcpCubic& cubic) { return cubic.*member; }
};
template struct ShowEpochStart<&ns3::TcpCubic::m_epochStart>;

}  // namespace

void LinuxCubic::Configure(int factor) {
  factor_ = factor;
  SetAttribute("HyStart", ns3::BooleanValue(false));
}

void LinuxCubic::PktsAcked(ns3::Ptr<ns3::TcpSocketState> tcb, std::uint32_t segments,
                           const ns3::Time& rtt) {
  TcpCubic::PktsAcked(tcb, segments, rtt);
  // `rtt` is the smoothed one.
  const std::int64_t last = std::max<std::int64_t>(tcb->m_lastRtt.Get().GetTimeStep(), 1);
  if (rtt_min_ == 0 || last < rtt_min_) rtt_min_ = last;
  if (!found_ && tcb->m_cWnd < tcb->m_ssThresh) HyStart(*tcb, last);
}

void LinuxCubic::CongestionStateSet(ns3::Ptr<ns3::TcpSocketState> tcb,
                                    ns3::TcpSocketState::TcpCongState_t state) {
  TcpCubic::CongestionStateSet(tcb, state);
  if (state != ns3::TcpSocketState::CA_LOSS) return;
  rtt_min_ = 0;
  found_ = false;
  NewRound(*tcb);
}

ns3::Ptr<ns3::TcpCongestionOps> LinuxCubic::Fork() { return ns3::CopyObject<LinuxCubic>(this); }

void LinuxCubic::Rest() {
  age_.reset();
  if (EpochStart(*this) != ns3::Time::Min()) age_ = ns3::Simulator::Now() - EpochStart(*this);
}

void LinuxCubic::Resume() {
  if (age_) EpochStart(*this) = ns3::Simulator::Now() - *age_;
  round_start_ = -1;
}

void LinuxCubic::NewRound(const ns3::TcpSocketState& tcb) {
  round_start_ = last_ack_ = ns3::Simulator::Now().GetTimeStep();
  round_end_ = tcb.m_highTxMark;
  round_rtt_min_ = std::numeric_limits<std::int64_t>::max();
  samples_ = 0;
}

void LinuxCubic::HyStart(ns3::TcpSocketState& tcb, std::int64_t rtt) {
  if (round_start_ < 0 || tcb.m_lastAckedSeq > round_end_) NewRound(tcb);
  if (tcb.GetCwndInSegments() * static_cast<std::uint32_t>(factor_) < kLowWindow) return;
  const std::int64_t now = ns3::Simulator::Now().GetTimeStep();
  if (now - last_ack_ <= kTrainGap * factor_) {
    last_ack_ = now;
    // Half, because nothing paces.
    if (now - round_start_ > (rtt_min_ + kAckDelay) / 2) found_ = true;
  }
  round_rtt_min_ = std::min(round_rtt_min_, rtt);
  if (samples_ < kSamples) {
    ++samples_;
  } else if (round_rtt_min_ > rtt_min_ + std::clamp(rtt_min_ / 8, 4 * kMs, 16 * kMs)) {
    found_ = true;
  }
  if (found_) tcb.m_ssThresh = tcb.m_cWnd;
}

}  // namespace spes::sim
