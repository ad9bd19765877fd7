// Congestion control for segments that stand for several: in bytes and seconds the same as with
// segments of real size.
#pragma once

#include <ns3/tcp-linux-reno.h>
#include <ns3/tcp-socket-state.h>

#include <cstdint>

#include "sim/ns3/linux_cubic.h"

namespace spes::sim {

// Reno that adds one segment of real size for each window acknowledged (RFC 5681, equation 3), not
// one of the larger segments.
class CoarseReno : public ns3::TcpLinuxReno {
 public:
  explicit CoarseReno(int factor) : factor_(factor) {}
  ns3::Ptr<ns3::TcpCongestionOps> Fork() override { return ns3::CopyObject<CoarseReno>(this); }

 protected:
  void CongestionAvoidance(ns3::Ptr<ns3::TcpSocketState> tcb, std::uint32_t acked) override;

 private:
  int factor_;
  double gain_ = 0;  // bytes not yet added
};

// CUBIC with its scaling constant C, which counts segments, divided by the factor, and with the
// estimate of the Reno-friendly region (RFC 9438, section 4.3) in bytes.
class CoarseCubic : public LinuxCubic {
 public:
  void Configure(int factor) override;
  ns3::Ptr<ns3::TcpCongestionOps> Fork() override { return ns3::CopyObject<CoarseCubic>(this); }
  void IncreaseWindow(ns3::Ptr<ns3::TcpSocketState> tcb, std::uint32_t acked) override;
  std::uint32_t GetSsThresh(ns3::Ptr<const ns3::TcpSocketState> tcb,
                            std::uint32_t in_flight) override;

 private:
  double friendly_ = 0;  // bytes: the window that Reno would have; 0 before the first loss
};

}  // namespace spes::sim
