#include "sim/link_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <queue>
#include <stdexcept>
#include <tuple>

#include "sim/seeds.h"

namespace spes::sim {
namespace {

double MeanBps(double bps, const RateTrace* trace) {
  if (trace == nullptr) return bps;
  const Time end = trace->period > Time{0} ? trace->period : trace->steps.back().at;
  if (end == Time{0}) return trace->steps.back().bps;
  double sum = 0;
  for (std::size_t i = 0; i < trace->steps.size(); ++i) {
    const Time until = i + 1 < trace->steps.size() ? trace->steps[i + 1].at : end;
    sum += trace->steps[i].bps * ToSeconds(until - trace->steps[i].at);
  }
  return sum / ToSeconds(end);
}

// What an access link and a path have in common.
template <typename Line>
Link MakeLink(const std::string& name, double bps, const std::shared_ptr<const RateTrace>& trace,
              Time delay, const Line& line, std::uint64_t seed) {
  return {.name = name,
          .bps = MeanBps(bps, trace.get()),
          .rate = RateCurve(bps, trace, line.conditions, seed),
          .delay = delay,
          .rtt_steps = line.conditions.rtt_steps,
          .loss = line.loss,
          .loss_burst = line.loss_burst};
}

}  // namespace

Time Link::DelayAt(Time t) const {
  const auto next = std::ranges::upper_bound(rtt_steps, t, {}, &RttStep::at);
  return next == rtt_steps.begin() ? delay : delay + std::prev(next)->extra / 2;
}

Time Link::LongestDelayFrom(Time t) const {
  Time longest = DelayAt(t);
  for (const RttStep& step : rtt_steps) {
    if (step.at > t) longest = std::max(longest, delay + step.extra / 2);
  }
  return longest;
}

Time Link::NextDelayChange(Time t) const {
  const auto next = std::ranges::upper_bound(rtt_steps, t, {}, &RttStep::at);
  return next == rtt_steps.end() ? kNever : next->at;
}

LinkGraph::LinkGraph(const Topology& topology, const TcpConfig& tcp) {
  topology.Validate();
  tcp.Validate();
  for (const Host& host : topology.hosts) host_site_.push_back(host.site);
  const auto add = [this, &tcp](const std::string& name, double bps,
                                const std::shared_ptr<const RateTrace>& trace, Time delay,
                                const auto& line) {
    const std::uint64_t seed = LinkSeed(tcp.seed, links_.size());
    links_.push_back(MakeLink(name, bps, trace, delay, line, seed));
    queue_bdp_.push_back(line.queue_bdp);
  };
  for (const Host& host : topology.hosts) {
    const AccessLink& link = host.link;
    add(host.name + " up", link.up_bps, link.up_trace, link.rtt / 2, link);
  }
  for (const Host& host : topology.hosts) {
    const AccessLink& link = host.link;
    add(host.name + " down", link.down_bps, link.down_trace, link.rtt - link.rtt / 2, link);
  }
  for (std::size_t s = 0; s < topology.uplinks.size(); ++s) {
    if (!topology.uplinks[s]) continue;
    const AccessLink& link = *topology.uplinks[s];
    add(topology.sites[s] + " up", link.up_bps, link.up_trace, link.rtt / 2, link);
    add(topology.sites[s] + " down", link.down_bps, link.down_trace, link.rtt - link.rtt / 2, link);
  }
  for (std::size_t s = 0; s < topology.sites.size(); ++s) {
    for (std::size_t t = 0; t < topology.sites.size(); ++t) {
      if (!topology.paths[s][t]) continue;
      const SitePath& path = *topology.paths[s][t];
      add(s == t ? "within " + topology.sites[s] : topology.sites[s] + " → " + topology.sites[t],
          path.bps, path.trace, s <= t ? path.rtt / 2 : path.rtt - path.rtt / 2, path);
    }
  }
  FindRoutes(topology);
  SizeQueues(tcp);
}

void LinkGraph::FindRoutes(const Topology& topology) {
  const int sites = static_cast<int>(topology.sites.size());
  int next = 2 * hosts();
  std::vector<std::pair<int, int>> uplink(sites, {-1, -1});  // up, down
  for (int s = 0; s < static_cast<int>(topology.uplinks.size()); ++s) {
    if (topology.uplinks[s]) uplink[s] = {next, next + 1}, next += 2;
  }
  std::vector<std::vector<int>> line(sites, std::vector<int>(sites, -1));
  for (int s = 0; s < sites; ++s) {
    for (int t = 0; t < sites; ++t) {
      if (topology.paths[s][t]) line[s][t] = next++;
    }
  }
  std::vector<bool> peopled(sites, false);
  for (const int site : host_site_) peopled[site] = true;

  site_route_.assign(sites, std::vector<SiteRoute>(sites));
  for (int from = 0; from < sites; ++from) {
    if (!peopled[from]) continue;
    // Dijkstra's algorithm; with direct routing over the lines from `from` alone.
    constexpr std::int64_t kFar = kNever.count();
    std::vector<std::tuple<std::int64_t, int>> best(sites, {kFar, 0});  // round trip in ns, lines
    std::vector<int> before(sites, -1);
    using Entry = std::tuple<std::int64_t, int, int>;  // the same, site
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
    best[from] = {0, 0};
    open.emplace(0, 0, from);
    while (!open.empty()) {
      const auto [rtt, lines, site] = open.top();
      open.pop();
      if (best[site] != std::tuple(rtt, lines)) continue;
      if (topology.routing == Routing::kDirect && site != from) continue;
      for (int to = 0; to < sites; ++to) {
        if (to == site || line[site][to] < 0) continue;
        const std::tuple reached(rtt + topology.paths[site][to]->rtt.count(), lines + 1);
        if (reached >= best[to]) continue;
        best[to] = reached;
        before[to] = site;
        open.emplace(std::get<0>(reached), lines + 1, to);
      }
    }
    for (int to = 0; to < sites; ++to) {
      if (!peopled[to]) continue;
      SiteRoute& route = site_route_[from][to];
      if (to == from) {
        if (line[from][from] >= 0) route.push_back(line[from][from]);
        continue;
      }
      if (before[to] < 0) {
        throw std::invalid_argument(fmt::format(
            "there is no path between sites '{}' and '{}'{}", topology.sites[from],
            topology.sites[to],
            topology.routing == Routing::kDirect
                ? "; give one, or let traffic pass through other sites with routing: shortest"
                : ", not even through other sites"));
      }
      if (uplink[to].second >= 0) route.push_back(uplink[to].second);
      for (int site = to; site != from; site = before[site]) {
        route.push_back(line[before[site]][site]);
      }
      if (uplink[from].first >= 0) route.push_back(uplink[from].first);
      std::ranges::reverse(route);
    }
  }
}

// By pairs of sites, each with its two hosts of the longest access: hosts may be many.
void LinkGraph::SizeQueues(const TcpConfig& tcp) {
  const int sites = static_cast<int>(site_route_.size());
  std::vector<std::vector<int>> far(sites);  // [site] hosts, the longest access first
  for (int host = 0; host < hosts(); ++host) far[host_site_[host]].push_back(host);
  const auto access = [this](int host) {
    return links_[host].delay + links_[hosts() + host].delay;
  };
  for (std::vector<int>& site : far) std::ranges::stable_sort(site, std::greater<>(), access);
  const auto note = [this](int link, Time rtt) {
    links_[link].longest_rtt = std::max(links_[link].longest_rtt, rtt);
  };
  for (int from = 0; from < sites; ++from) {
    for (int to = 0; to < sites; ++to) {
      if (far[from].empty() || far[to].empty()) continue;
      Time between{0};
      for (const int link : site_route_[from][to]) between += links_[link].delay;
      for (const int link : site_route_[to][from]) between += links_[link].delay;
      for (const int a : far[from]) {
        const int b = far[to].front() != a ? far[to].front() : far[to].size() > 1 ? far[to][1] : -1;
        if (b < 0) continue;
        const Time rtt = access(a) + between + access(b);
        note(a, rtt);
        note(hosts() + a, rtt);
        for (const int link : site_route_[from][to]) note(link, rtt);
        for (const int link : site_route_[to][from]) note(link, rtt);
      }
    }
  }
  for (std::size_t i = 0; i < links_.size(); ++i) {
    Link& link = links_[i];
    link.queue_bytes = std::max(queue_bdp_[i] * link.bps / 8 * ToSeconds(link.longest_rtt),
                                2.0 * tcp.initial_window * WireBytes(tcp.segment_bytes));
  }
}

const std::vector<int>& LinkGraph::Route(int a, int b) const {
  const auto [route, fresh] = routes_.try_emplace({a, b});
  if (fresh) {
    const SiteRoute& between = site_route_[host_site_[a]][host_site_[b]];
    route->second.reserve(between.size() + 2);
    route->second.push_back(a);
    route->second.insert(route->second.end(), between.begin(), between.end());
    route->second.push_back(hosts() + b);
  }
  return route->second;
}

Time LinkGraph::OneWay(int a, int b, Time t) const {
  Time one_way{0};
  for (const int link : Route(a, b)) one_way += links_[link].DelayAt(t);
  return one_way;
}

Time LinkGraph::LongestRttFrom(int a, int b, Time t) const {
  Time rtt{0};
  for (const int link : Route(a, b)) rtt += links_[link].LongestDelayFrom(t);
  for (const int link : Route(b, a)) rtt += links_[link].LongestDelayFrom(t);
  return rtt;
}

double LinkGraph::BottleneckBps(int a, int b) const {
  double least = links_[a].bps;
  for (const int link : Route(a, b)) least = std::min(least, links_[link].bps);
  return least;
}

double LinkGraph::PathLoss(int a, int b) const {
  double passes = 1;
  for (const int link : Route(a, b)) passes *= 1 - links_[link].loss;
  return 1 - passes;
}

}  // namespace spes::sim
