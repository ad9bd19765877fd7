// What the kernel counts while a transfer is under way, over all connections that carry it.
#pragma once

#include <map>
#include <memory>

#include "trainer/runtime/tcp/connection.h"
#include "trainer/runtime/tcp/link.h"

namespace spes::trainer {

class FlowMeter {
 public:
  // A transfer begins; Add the connections that are there, and those that come later.
  void Begin();
  void Add(Connection& connection);
  // Before or just after it is closed.
  void Remove(Connection& connection);
  // From time to time, for the mean of the round-trip time.
  void Sample(Connection& connection);
  // Since Begin.
  TransferFigures Figures();

 private:
  void Count(Connection& connection, const TcpCounters& since);

  std::map<Connection*, TcpCounters> since_;
  TransferFigures sum_;
  double rtt_sum_s_ = 0;
  int samples_ = 0;
};

}  // namespace spes::trainer
