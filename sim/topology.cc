#include "sim/topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/refuse.h"

namespace spes::sim {
namespace {

void CheckRate(const std::string& what, double bps) {
  if (!(bps >= 1) || !std::isfinite(bps)) {
    Refuse("{} has a rate of {} bit/s: a rate must be at least 1 bit/s and finite", what, bps);
  }
}

void CheckLine(const std::string& what, Time rtt, double loss, double loss_burst,
               double queue_bdp) {
  if (rtt < Time{0})
    Refuse("{} has a round trip of {} ns: it cannot be negative", what, rtt.count());
  if (!(loss >= 0 && loss < 1)) Refuse("{} has a loss of {}: it must lie in [0, 1)", what, loss);
  if (!(loss_burst >= 1) || !std::isfinite(loss_burst)) {
    Refuse("{} has bursts of {} lost packets: at least 1", what, loss_burst);
  }
  if (loss_burst > 1 && loss / (1 - loss) > loss_burst) {
    Refuse("{} cannot lose {} of its packets in bursts of {}", what, loss, loss_burst);
  }
  if (!(queue_bdp > 0) || !std::isfinite(queue_bdp)) {
    Refuse("{} has a queue of {} BDP: it must be positive and finite", what, queue_bdp);
  }
}

void CheckAccess(const std::string& whose, const AccessLink& link) {
  CheckRate(fmt::format("the down link of {}", whose), link.down_bps);
  CheckRate(fmt::format("the up link of {}", whose), link.up_bps);
  const std::string what = fmt::format("the link of {}", whose);
  CheckLine(what, link.rtt, link.loss, link.loss_burst, link.queue_bdp);
  link.conditions.Validate(what);
  if (link.down_trace) Validate(*link.down_trace, fmt::format("the down link of {}", whose));
  if (link.up_trace) Validate(*link.up_trace, fmt::format("the up link of {}", whose));
}

}  // namespace

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
    for (std::size_t j = 0; j < n; ++j) {
      if (!paths[i][j]) continue;
      const SitePath& path = *paths[i][j];
      const std::string what = fmt::format("the path between sites '{}' and '{}'",
                                           sites[std::min(i, j)], sites[std::max(i, j)]);
      CheckRate(what, path.bps);
      CheckLine(what, path.rtt, path.loss, path.loss_burst, path.queue_bdp);
      path.conditions.Validate(what);
      if (path.trace) sim::Validate(*path.trace, what);
      if (!paths[j][i]) Refuse("{} leads one way only: give its way back too", what);
      if (path.rtt != paths[j][i]->rtt) {
        Refuse("{} has another round trip than its way back: they must be equal", what);
      }
    }
  }
  if (!uplinks.empty() && uplinks.size() != n) {
    Refuse("there are {} links of sites for {} sites", uplinks.size(), n);
  }
  for (std::size_t i = 0; i < uplinks.size(); ++i) {
    if (uplinks[i]) CheckAccess(fmt::format("site '{}'", sites[i]), *uplinks[i]);
  }
  for (const Host& host : hosts) {
    if (host.site < 0 || static_cast<std::size_t>(host.site) >= n) {
      Refuse("host '{}' stands at site {}: there are only {} sites, counted from 0", host.name,
             host.site, n);
    }
    CheckAccess(fmt::format("host '{}'", host.name), host.link);
  }
}

void TcpConfig::Validate() const {
  if (congestion == "bbr") {
    Refuse(
        "congestion control 'bbr' is not offered: ns-3's model of it can stand still where buffers "
        "exceed the path and its queue; cubic or reno");
  }
  if (congestion != "cubic" && congestion != "reno") {
    Refuse("congestion control '{}' is not known: cubic or reno", congestion);
  }
  if (after_idle != "fresh" && after_idle != "remembered") {
    Refuse("connections after idling '{}': fresh or remembered", after_idle);
  }
  if (segment_bytes < 536 || segment_bytes > 65000) {
    Refuse("a TCP segment of {} bytes: it must lie in [536, 65000]", segment_bytes);
  }
  if (initial_window < 1 || initial_window > 1000) {
    Refuse("an initial window of {} segments: it must lie in [1, 1000]", initial_window);
  }
  if (coarse_factor < 1 || coarse_factor > 100) {
    Refuse("coarse segments of {} ordinary ones: the factor must lie in [1, 100]", coarse_factor);
  }
  if (streams < 1) Refuse("{} TCP streams per transfer: at least 1", streams);
  if (stall_timeout <= Time{0}) Refuse("a stall time-out that is not positive");
}

}  // namespace spes::sim
