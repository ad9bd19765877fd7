#include "trainer/runtime/tcp/flow_meter.h"

#include <cmath>

namespace spes::trainer {

void FlowMeter::Begin() { *this = {}; }

void FlowMeter::Add(Connection& connection) { since_[&connection] = connection.Counters(); }

void FlowMeter::Remove(Connection& connection) {
  const auto found = since_.find(&connection);
  if (found == since_.end()) return;
  Count(connection, found->second);
  since_.erase(found);
}

void FlowMeter::Sample(Connection& connection) {
  const double rtt = connection.Counters().rtt_s;
  if (!(rtt > 0)) return;
  rtt_sum_s_ += rtt;
  ++samples_;
}

void FlowMeter::Count(Connection& connection, const TcpCounters& since) {
  const TcpCounters now = connection.Counters();
  const std::int64_t segments = now.sent_segments - since.sent_segments;
  const std::int64_t again = now.retransmitted_segments - since.retransmitted_segments;
  const std::int64_t needless = now.needless_segments - since.needless_segments;
  sum_.wire_bytes += now.sent_bytes - since.sent_bytes + segments * connection.header_bytes();
  sum_.retransmitted_bytes += now.retransmitted_bytes - since.retransmitted_bytes;
  sum_.retransmissions += again;
  sum_.drops += std::max<std::int64_t>(0, again - needless);
  if (now.rtt_min_s > 0 && !(sum_.rtt_min_s <= now.rtt_min_s)) sum_.rtt_min_s = now.rtt_min_s;
  if (samples_ == 0) Sample(connection);
}

TransferFigures FlowMeter::Figures() {
  for (const auto& [connection, since] : since_) Count(*connection, since);
  since_.clear();
  TransferFigures figures = sum_;
  if (samples_ > 0) figures.rtt_mean_s = rtt_sum_s_ / samples_;
  return figures;
}

}  // namespace spes::trainer
