#include "sim/ns3/coarse_congestion.h"

#include <ns3/boolean.h>
#include <ns3/double.h>

namespace spes::sim {
namespace {

// RFC 9438, sections 4.3 and 4.6.
constexpr double kC = 0.4, kBeta = 0.7;
constexpr double kAlpha = 3 * (1 - kBeta) / (1 + kBeta);

}  // namespace

void CoarseReno::CongestionAvoidance(ns3::Ptr<ns3::TcpSocketState> tcb, std::uint32_t acked) {
  const double segment = tcb->m_segmentSize;
  gain_ += segment / factor_ * acked * segment / tcb->m_cWnd;
  if (gain_ < segment) return;
  gain_ -= segment;
  tcb->m_cWnd += tcb->m_segmentSize;
}

void CoarseCubic::Configure(int factor) {
  LinuxCubic::Configure(factor);
  SetAttribute("C", ns3::DoubleValue(kC / factor));
  SetAttribute("TcpFriendliness", ns3::BooleanValue(false));
}

void CoarseCubic::IncreaseWindow(ns3::Ptr<ns3::TcpSocketState> tcb, std::uint32_t acked) {
  const bool avoidance = tcb->m_cWnd >= tcb->m_ssThresh;
  LinuxCubic::IncreaseWindow(tcb, acked);
  if (!avoidance || friendly_ == 0 || !tcb->m_isCwndLimited) return;
  const double segment = tcb->m_segmentSize;
  friendly_ += kAlpha * segment / factor_ * acked * segment / tcb->m_cWnd;
  if (friendly_ >= tcb->m_cWnd + segment) tcb->m_cWnd += tcb->m_segmentSize;
}

std::uint32_t CoarseCubic::GetSsThresh(ns3::Ptr<const ns3::TcpSocketState> tcb,
                                       std::uint32_t in_flight) {
  const std::uint32_t threshold = LinuxCubic::GetSsThresh(tcb, in_flight);
  friendly_ = threshold;
  return threshold;
}

}  // namespace spes::sim
