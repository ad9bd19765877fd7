#include "scenarios/capacity_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "scenarios/csv.h"
#include "scenarios/text_file.h"

namespace spes::scenarios {

namespace {

constexpr double kPacketBits = 1500 * 8;
constexpr std::int64_t kMaxMs = 10'000'000'000;  // 115 days

std::int64_t Milliseconds(std::string_view line, const Place& place) {
  const std::string_view text = Trimmed(line);
  std::int64_t ms = -1;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, ms);
  if (error != std::errc{} || rest != end || ms < 0 || ms > kMaxMs) {
    FailAt(place, fmt::format("{} is not a time in whole milliseconds from 0 to {}", Quoted(text),
                              kMaxMs));
  }
  return ms;
}

}  // namespace

std::shared_ptr<const sim::RateTrace> ReadCapacityTrace(const std::string& file,
                                                        sim::Time interval) {
  const std::string text = ReadText(file);
  Place place{file, 0};
  // Packets of each interval in which some can pass, in order. What can pass at a millisecond could
  // pass since the one before, so an interval ends with its last instant.
  std::vector<std::pair<std::int64_t, std::int64_t>> packets;  // interval, count
  std::int64_t last = 0;
  for (const std::string_view line : Lines(text)) {
    ++place.line;
    const std::int64_t ms = Milliseconds(line, place);
    if (ms < last) {
      FailAt(place, fmt::format("{} ms comes after {} ms: times must not decrease", ms, last));
    }
    last = ms;
    const sim::Time at = std::chrono::milliseconds(ms);
    const std::int64_t index = ms == 0 ? 0 : (at - sim::Time{1}) / interval;
    if (packets.empty() || packets.back().first != index) packets.emplace_back(index, 0);
    ++packets.back().second;
  }
  if (packets.empty()) FailAt({file, 0}, "is empty; a trace has a time in ms in each line");
  if (last == 0) FailAt(place, "the trace takes no time: its last line must be above 0");

  auto trace = std::make_shared<sim::RateTrace>();
  trace->period = std::chrono::milliseconds(last);
  const auto add = [&](sim::Time at, double bps) {
    if (trace->steps.empty() || trace->steps.back().bps != bps) trace->steps.push_back({at, bps});
  };
  sim::Time reached{0};
  for (const auto& [index, count] : packets) {
    const sim::Time begin = index * interval;
    const sim::Time end = std::min(begin + interval, trace->period);
    if (begin > reached) add(reached, 0);
    add(begin, static_cast<double>(count) * kPacketBits / sim::ToSeconds(end - begin));
    reached = end;
  }
  return trace;
}

}  // namespace spes::scenarios
