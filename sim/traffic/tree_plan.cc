#include <map>

#include "sim/traffic/pattern_plans.h"

namespace spes::sim {

namespace {

struct Site {
  std::vector<int> members;              // the head first
  std::int64_t up = 0;                   // head to root: each payload trained here once
  std::int64_t held = 0;                 // published values that the head has without the root
  int gathered = PlanBuilder::kNothing;  // when the head has all of its members
};

}  // namespace

TrafficPlan TreePlan(const Exchange& exchange) {
  const auto nodes = static_cast<std::size_t>(exchange.nodes);
  std::map<int, Site> sites;
  for (int node = 0; node < exchange.nodes; ++node) {
    sites[exchange.sites[static_cast<std::size_t>(node)]].members.push_back(node);
  }
  const auto site_of = [&](int node) { return exchange.sites[static_cast<std::size_t>(node)]; };

  std::vector<std::int64_t> up(nodes), kept(nodes);  // what a node need not get
  std::int64_t all = 0;
  for (const Payload& payload : exchange.payloads) {
    all += payload.down_bytes;
    std::map<int, int> trainers;  // [site]
    for (const int node : payload.trainers) {
      up[static_cast<std::size_t>(node)] += payload.up_bytes;
      ++trainers[site_of(node)];
    }
    for (const auto& [site, count] : trainers) sites[site].up += payload.up_bytes;
    if (payload.trainers.size() == 1 && !exchange.owner_receives) {
      kept[static_cast<std::size_t>(payload.trainers[0])] += payload.down_bytes;
      sites[site_of(payload.trainers[0])].held += payload.down_bytes;
    }
  }

  PlanBuilder plan;
  const int root = exchange.coordinators[0];
  std::vector<int> arrivals;
  for (auto& [name, site] : sites) {
    const int head = site.members[0];
    std::vector<int> from_members;
    for (const int member : site.members) {
      from_members.push_back(plan.Send(member, head, up[static_cast<std::size_t>(member)]));
    }
    site.gathered = plan.Joint(head, std::move(from_members));
    const int sent = plan.Send(head, root, site.up, {site.gathered});
    arrivals.push_back(head == root ? site.gathered : sent);
  }
  const int reduced = plan.Joint(root, std::move(arrivals));
  for (const auto& [name, site] : sites) {
    const int head = site.members[0];
    const int sent = plan.Send(root, head, all - site.held, {reduced});
    const int published = head == root ? reduced : sent;
    for (const int member : site.members) {
      plan.Send(head, member, all - kept[static_cast<std::size_t>(member)],
                {site.gathered, published});
    }
  }
  return plan.Take();
}

}  // namespace spes::sim
