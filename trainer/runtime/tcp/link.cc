#include "trainer/runtime/tcp/link.h"

#include <cmath>

#include "trainer/runtime/tcp/bytes.h"
#include "trainer/wire/printable.h"

namespace spes::trainer {

namespace {
constexpr double kLongestRtt = 86400;  // s; one that is not known is not a number

[[noreturn]] void Nonsense() { throw WireError("a frame with a value that means nothing"); }

bool Flag(ByteReader& in) {
  const auto value = in.Number<std::uint8_t>();
  if (value > 1) Nonsense();
  return value == 1;
}
}  // namespace

std::string Encode(const Arrived& m) {
  ByteWriter out;
  out.Number(m.message).Number(m.transfer).Number(static_cast<std::uint8_t>(m.complete));
  out.Number(static_cast<std::uint32_t>(m.chunks.size()));
  for (const ChunkRange& range : m.chunks) out.Number(range.first).Number(range.end);
  return out.Take();
}

Arrived DecodeArrived(std::string_view payload) {
  ByteReader in(payload);
  Arrived m;
  m.message = in.Number<std::uint64_t>();
  m.transfer = in.Number<std::uint64_t>();
  m.complete = Flag(in);
  const auto ranges = in.Number<std::uint32_t>();
  if (ranges > kMaxRanges || (m.complete && ranges > 0)) Nonsense();
  std::uint32_t end = 0;
  for (std::uint32_t i = 0; i < ranges; ++i) {
    ChunkRange range;
    range.first = in.Number<std::uint32_t>();
    range.end = in.Number<std::uint32_t>();
    if (range.first < end || range.end <= range.first) Nonsense();
    end = range.end;
    m.chunks.push_back(range);
  }
  in.End();
  return m;
}

std::string Encode(const TransferFigures& m) {
  return ByteWriter()
      .Number(m.wire_bytes)
      .Number(m.retransmitted_bytes)
      .Number(m.retransmissions)
      .Number(m.drops)
      .Number(m.rtt_min_s)
      .Number(m.rtt_mean_s)
      .Take();
}

TransferFigures DecodeFigures(std::string_view payload) {
  ByteReader in(payload);
  TransferFigures m;
  m.wire_bytes = in.Number<std::int64_t>();
  m.retransmitted_bytes = in.Number<std::int64_t>();
  m.retransmissions = in.Number<std::int64_t>();
  m.drops = in.Number<std::int64_t>();
  m.rtt_min_s = in.Number<double>();
  m.rtt_mean_s = in.Number<double>();
  in.End();
  for (const auto count : {m.wire_bytes, m.retransmitted_bytes, m.retransmissions, m.drops}) {
    if (count < 0) Nonsense();
  }
  for (const double rtt : {m.rtt_min_s, m.rtt_mean_s}) {
    if (!std::isnan(rtt) && !(rtt >= 0 && rtt <= kLongestRtt)) Nonsense();
  }
  return m;
}

std::string Encode(const Beat& m) {
  return ByteWriter().Number(m.sent).Number(m.echo).Number(m.held).Take();
}

Beat DecodeBeat(std::string_view payload) {
  ByteReader in(payload);
  Beat m;
  m.sent = in.Number<std::int64_t>();
  m.echo = in.Number<std::int64_t>();
  m.held = in.Number<std::int64_t>();
  in.End();
  return m;
}

std::string Encode(const Bye& m) {
  return ByteWriter()
      .Number(static_cast<std::uint8_t>(m.session_over))
      .Text(std::string_view(m.reason).substr(0, kMaxReason))
      .Take();
}

Bye DecodeBye(std::string_view payload) {
  ByteReader in(payload);
  Bye m;
  m.session_over = Flag(in);
  m.reason = Printable(in.Text());
  in.End();
  if (m.reason.size() > kMaxReason) Nonsense();
  return m;
}

}  // namespace spes::trainer
