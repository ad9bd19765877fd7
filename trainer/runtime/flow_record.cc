#include "trainer/runtime/flow_record.h"

#include <limits>
#include <utility>

namespace spes::trainer {

analysis::FlowRecord MakeFlowRecord(const sim::FlowResult& result, std::int32_t from,
                                    std::int32_t to, std::string message, std::int32_t round) {
  const auto seconds = [](const std::optional<sim::Time>& t) {
    return t ? sim::ToSeconds(*t) : std::numeric_limits<double>::quiet_NaN();
  };
  analysis::FlowRecord record;
  record.flow = result.id;
  record.from = from;
  record.to = to;
  record.message = std::move(message);
  record.round = round;
  record.start_s = sim::ToSeconds(result.start);
  record.end_s = sim::ToSeconds(result.end);
  record.bytes = result.delivered_bytes;
  record.wire_bytes = result.wire_bytes;
  record.retransmitted_bytes = result.retransmitted_bytes;
  record.retransmissions = result.retransmissions;
  record.drops = result.dropped_packets;
  record.rtt_min_s = seconds(result.rtt_min);
  record.rtt_mean_s = seconds(result.rtt_mean);
  const double duration = record.end_s - record.start_s;
  record.goodput_bps = duration > 0 ? 8.0 * static_cast<double>(record.bytes) / duration : 0;
  record.outcome = sim::Name(result.outcome);
  return record;
}

}  // namespace spes::trainer
