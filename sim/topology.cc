#include "sim/topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace spes::sim {
namespace {

template <typename... Args>
[[noreturn]] void Refuse(fmt::format_string<Args...> format, Args&&... args) {
  throw std::invalid_argument(fmt::format(format, std::forward<Args>(args)...));
}

void CheckRate(const std::string& what, double bps) {
  if (!(bps > 0) || !std::isfinite(bps)) {
    Refuse("{} has a rate of {} bit/s: a rate must be positive and finite", what, bps);
  }
}

void CheckLine(const std::string& what, Time rtt, double loss, double queue_bdp) {
  if (rtt < Time{0})
    Refuse("{} has a round trip of {} ns: it cannot be negative", what, rtt.count());
  if (!(loss >= 0 && loss < 1)) Refuse("{} has a loss of {}: it must lie in [0, 1)", what, loss);
  if (!(queue_bdp > 0) || !std::isfinite(queue_bdp)) {
    Refuse("{} has a queue of {} BDP: it must be positive and finite", what, queue_bdp);
  }
}

}  // namespace

Time Topology::Rtt(int a, int b) const {
  const Host &from = hosts[a], &to = hosts[b];
  return from.link.rtt + paths[from.site][to.site].rtt + to.link.rtt;
}

double Topology::BottleneckBps(int a, int b) const {
  const Host &from = hosts[a], &to = hosts[b];
  return std::min({from.link.up_bps, paths[from.site][to.site].bps, to.link.down_bps});
}

Time Topology::LongestRtt(int a) const {
  Time longest{0};
  for (int b = 0; b < static_cast<int>(hosts.size()); ++b) {
    if (b != a) longest = std::max(longest, Rtt(a, b));
  }
  return longest;
}

double Topology::PathLoss(int a, int b) const {
  const Host &from = hosts[a], &to = hosts[b];
  return 1 - (1 - from.link.loss) * (1 - paths[from.site][to.site].loss) * (1 - to.link.loss);
}

void Topology::Validate() const {
  if (hosts.empty()) Refuse("the network has no hosts");
  const std::size_t n = sites.size();
  if (n == 0) Refuse("the network has no sites");
  if (paths.size() != n) {
    Refuse("the matrix of site paths has {} rows for {} sites", paths.size(), n);
  }
  for (std::size_t i = 0; i < n; ++i) {
    if (paths[i].size() != n) {
      Refuse("the matrix of site paths is not square: row '{}' has {} of {} entries", sites[i],
             paths[i].size(), n);
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      const SitePath &p = paths[i][j], &q = paths[j][i];
      const std::string what =
          fmt::format("the path between sites '{}' and '{}'", sites[j], sites[i]);
      CheckRate(what, p.bps);
      CheckLine(what, p.rtt, p.loss, p.queue_bdp);
      if (p.rtt != q.rtt || p.bps != q.bps || p.loss != q.loss || p.queue_bdp != q.queue_bdp) {
        Refuse("{} differs from its reverse: the matrix of site paths must be symmetric", what);
      }
    }
  }
  for (const Host& host : hosts) {
    if (host.site < 0 || static_cast<std::size_t>(host.site) >= n) {
      Refuse("host '{}' stands at site {}: there are only {} sites, counted from 0", host.name,
             host.site, n);
    }
    CheckRate(fmt::format("the down link of host '{}'", host.name), host.link.down_bps);
    CheckRate(fmt::format("the up link of host '{}'", host.name), host.link.up_bps);
    CheckLine(fmt::format("the link of host '{}'", host.name), host.link.rtt, host.link.loss,
              host.link.queue_bdp);
  }
}

void TcpConfig::Validate() const {
  if (congestion != "cubic" && congestion != "reno") {
    Refuse("congestion control '{}' is not known: cubic or reno", congestion);
  }
  if (segment_bytes < 536 || segment_bytes > 65000) {
    Refuse("a TCP segment of {} bytes: it must lie in [536, 65000]", segment_bytes);
  }
  if (initial_window < 1 || initial_window > 1000) {
    Refuse("an initial window of {} segments: it must lie in [1, 1000]", initial_window);
  }
  if (streams < 1) Refuse("{} TCP streams per transfer: at least 1", streams);
  if (stall_timeout <= Time{0}) Refuse("a stall time-out that is not positive");
}

}  // namespace spes::sim
