#include "app/wan_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace spes::app {

namespace {

constexpr std::size_t kLinksNamed = 3;
constexpr double kMostLate = 0.01;  // share of the frames

std::int64_t Sum(const std::vector<std::int64_t>& values) {
  return std::accumulate(values.begin(), values.end(), std::int64_t{0});
}

std::int64_t LinkDrops(const sim::EmulationCounts& counts) {
  std::int64_t dropped = 0;
  for (const sim::LinkUsage& link : counts.links) dropped += link.dropped_packets;
  return dropped;
}

std::string Percent(double share) {
  const double percent = 100 * share;
  return fmt::format("{:.{}f} %", percent, percent == 0 || percent >= 10 ? 0 : 2);
}

// Of the frames carried in between.
double LateShare(const WanCounts& before, const WanCounts& now) {
  const std::int64_t frames = now.emulation.frames - before.emulation.frames;
  const std::int64_t late = now.emulation.late_frames - before.emulation.late_frames;
  return static_cast<double>(late) / static_cast<double>(std::max<std::int64_t>(frames, 1));
}

// "12 in queues, 3 on links", and what should not be.
std::string Drops(const WanCounts& counts, const std::string& queues) {
  const std::int64_t in_queues = Sum(counts.emulation.queue_overflows);
  std::string text = fmt::format("{} in queues{}, {} on links", in_queues, queues,
                                 LinkDrops(counts.emulation) - in_queues);
  if (counts.device_drops > 0) {
    text +=
        fmt::format(", {} by devices of the hosts, which no link asked for", counts.device_drops);
  }
  return text;
}

// " (node 0 up 120, node 3 up 4)": those that dropped most.
std::string FullestQueues(const sim::EmulationCounts& counts, const std::vector<sim::Link>& links) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < links.size(); ++i) {
    if (counts.queue_overflows[i] > 0) order.push_back(i);
  }
  std::ranges::stable_sort(order, std::greater<>(),
                           [&](std::size_t i) { return counts.queue_overflows[i]; });
  if (order.empty()) return {};
  std::string text;
  for (std::size_t i = 0; i < std::min(order.size(), kLinksNamed); ++i) {
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", links[order[i]].name,
                        counts.queue_overflows[order[i]]);
  }
  return " (" + text + (order.size() > kLinksNamed ? ", …)" : ")");
}

}  // namespace

std::string WanTable(const WanPlan& plan, const sim::HostNamespaces& hosts) {
  const sim::LinkGraph graph(plan.topology, plan.tcp);
  const int coordinator = plan.coordinator();
  std::vector<std::vector<std::string>> rows = {
      {"host", "namespace", "address", "site", "down", "up", "round trip to coordinator"}};
  for (int host = 0; host <= coordinator; ++host) {
    const sim::Host& h = plan.topology.hosts[host];
    rows.push_back(
        {h.name, hosts.name(host), hosts.Address(host), plan.topology.sites[h.site],
         sim::FormatBitRate(graph.links()[graph.hosts() + host].bps, 4),
         sim::FormatBitRate(graph.links()[host].bps, 4),
         host == coordinator ? "" : sim::FormatDuration(graph.Rtt(host, coordinator), 4)});
  }
  std::rotate(rows.begin() + 1, rows.end() - 1, rows.end());  // the coordinator first
  std::vector<std::size_t> widths(rows[0].size());
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text = fmt::format("{}: {} hosts in real time, segments of {} bytes, {}\n", plan.name,
                                 hosts.hosts(), plan.tcp.segment_bytes, plan.tcp.congestion);
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += fmt::format("{:<{}}", row[i], widths[i] + 2);
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
  }
  return text;
}

std::string WanStatus(const WanCounts& before, const WanCounts& now) {
  const double wall_s = now.wall_s - before.wall_s;
  const double bits =
      8 * static_cast<double>(now.emulation.wire_bytes - before.emulation.wire_bytes);
  return fmt::format("{}: {} carried, {} late, lag {}, largest {}, CPU {}, dropped {}",
                     sim::FormatDuration(sim::FromSeconds(now.wall_s), 3),
                     sim::FormatBitRate(bits / wall_s, 3), Percent(LateShare(before, now)),
                     sim::FormatDuration(now.emulation.recent_lag, 2),
                     sim::FormatDuration(now.emulation.lag, 2),
                     Percent((now.cpu_s - before.cpu_s) / wall_s), Drops(now, ""));
}

std::string WanTooSlow(const WanCounts& before, const WanCounts& now) {
  const double late = LateShare(before, now);
  if (late <= kMostLate) return {};
  return fmt::format(
      "real time cannot be kept: {} of what is carried is more than {} late, up to {}; lower rates "
      "or fewer programs beside it help",
      Percent(late), sim::FormatDuration(sim::Emulation::kLate),
      sim::FormatDuration(now.emulation.recent_lag, 2));
}

std::string WanVerdict(const WanCounts& counts, const std::vector<sim::Link>& links) {
  const sim::EmulationCounts& emulation = counts.emulation;
  const double late = LateShare({}, counts);
  return fmt::format(
      "{}: {} late, largest lag {}; {} carried in {}, CPU {}; dropped {}",
      late <= kMostLate ? "in real time" : "not in real time", Percent(late),
      sim::FormatDuration(emulation.lag, 2), sim::FormatByteSize(emulation.wire_bytes, 3),
      sim::FormatDuration(sim::FromSeconds(counts.wall_s), 3),
      Percent(counts.cpu_s / counts.wall_s), Drops(counts, FullestQueues(emulation, links)));
}

}  // namespace spes::app
