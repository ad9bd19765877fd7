#include "sim/max_min.h"

#include <algorithm>
#include <queue>
#include <tuple>

namespace spes::sim {

MaxMin::MaxMin(std::vector<double> capacities) : links_(capacities.size()) {
  for (std::size_t i = 0; i < capacities.size(); ++i) links_[i].capacity = capacities[i];
}

int MaxMin::Add(std::span<const int> links, double weight, double cap) {
  int flow = static_cast<int>(flows_.size());
  if (free_flows_.empty()) {
    flows_.emplace_back();
  } else {
    flow = free_flows_.back();
    free_flows_.pop_back();
  }
  flows_[flow] = {.links = links, .weight = weight, .own_cap = cap, .moved = flows_[flow].moved};
  for (const int i : links) {
    Link& link = links_[i];
    const auto alone = static_cast<int>(link.sum);
    if (link.count == 1) link.full = Rate(alone) >= link.capacity;
    ++link.count;
    link.sum += flow;
    if (link.count == 2) Place(alone);
  }
  Place(flow);
  return flow;
}

void MaxMin::Remove(int flow) {
  Leave(flow);
  for (const int i : flows_[flow].links) {
    Link& link = links_[i];
    --link.count;
    link.sum -= flow;
    if (link.count == 1) Place(static_cast<int>(link.sum));
  }
  flows_[flow].links = {};
  free_flows_.push_back(flow);
}

void MaxMin::SetCap(int flow, double cap) {
  flows_[flow].own_cap = cap;
  Place(flow);
}

void MaxMin::SetWeight(int flow, double weight) {
  if (flows_[flow].weight == weight) return;
  Leave(flow);
  flows_[flow].weight = weight;
  Place(flow);
}

void MaxMin::SetCapacity(int link, double capacity) {
  if (links_[link].capacity == capacity) return;
  links_[link].capacity = capacity;
  outdated_ = true;
  if (links_[link].count == 1) Place(static_cast<int>(links_[link].sum));
}

double MaxMin::Rate(int flow) const {
  const Flow& f = flows_[flow];
  return f.capped ? f.cap : f.weight * groups_[f.group].level;
}

// Puts the flow where its links and its cap now belong.
void MaxMin::Place(int flow) {
  Flow& f = flows_[flow];
  std::vector<int> shared;
  double cap = f.own_cap;
  for (const int i : f.links) {
    if (links_[i].count > 1) {
      shared.push_back(i);
    } else {
      cap = std::min(cap, links_[i].capacity);
    }
  }
  std::ranges::sort(shared);
  if (f.group >= 0 && cap == f.cap && shared == groups_[f.group].links) return;
  if (f.group >= 0) Leave(flow);
  f.cap = cap;
  f.group = FindGroup(shared);
  Join(flow, f.threshold() < groups_[f.group].level);
  Note(flow);
}

void MaxMin::Note(int flow) {
  outdated_ = true;
  if (flows_[flow].moved) return;
  flows_[flow].moved = true;
  noted_.push_back(flow);
}

void MaxMin::Join(int flow, bool capped) {
  Flow& f = flows_[flow];
  Group& group = groups_[f.group];
  f.capped = capped;
  (capped ? group.capped : group.free).emplace(f.threshold(), flow);
  (capped ? group.cap_sum : group.weight_sum) += capped ? f.cap : f.weight;
  ++group.stale;
}

void MaxMin::Leave(int flow) {
  Flow& f = flows_[flow];
  Group& group = groups_[f.group];
  (f.capped ? group.capped : group.free).erase({f.threshold(), flow});
  (f.capped ? group.cap_sum : group.weight_sum) -= f.capped ? f.cap : f.weight;
  ++group.stale;
  if (group.capped.empty() && group.free.empty()) Drop(f.group);
  f.group = -1;
  outdated_ = true;
}

int MaxMin::FindGroup(const std::vector<int>& links) {
  const auto [found, fresh] = group_of_.try_emplace(links, -1);
  if (!fresh) return found->second;
  int index = static_cast<int>(groups_.size());
  if (free_groups_.empty()) {
    groups_.emplace_back();
  } else {
    index = free_groups_.back();
    free_groups_.pop_back();
    groups_[index] = {};
  }
  found->second = index;
  groups_[index].links = links;
  for (const int link : links) links_[link].groups.push_back(index);
  return index;
}

void MaxMin::Drop(int group) {
  for (const int link : groups_[group].links) std::erase(links_[link].groups, group);
  group_of_.erase(groups_[group].links);
  free_groups_.push_back(group);
}

// Sums that only follow differences gather rounding errors: they are added up anew after as many
// changes as there are members.
void MaxMin::AddUp(Group& group) {
  const auto members = static_cast<int>(group.capped.size() + group.free.size());
  if (group.stale < members) return;
  group.stale = 0;
  group.cap_sum = group.weight_sum = 0;
  for (const auto& [threshold, flow] : group.capped) group.cap_sum += flows_[flow].cap;
  for (const auto& [threshold, flow] : group.free) group.weight_sum += flows_[flow].weight;
}

MaxMin::Demand MaxMin::DemandAt(const Group& group, double level) const {
  if (group.frozen) return {.constant = group.demand};
  Demand demand{group.cap_sum, group.weight_sum};
  std::size_t free = group.free.size(), capped = group.capped.size();
  for (auto it = group.free.begin(); it != group.free.end() && it->first < level; ++it) {
    demand.constant += flows_[it->second].cap;
    demand.slope -= flows_[it->second].weight;
    --free, ++capped;
  }
  for (auto it = group.capped.rbegin(); it != group.capped.rend() && it->first >= level; ++it) {
    demand.constant -= flows_[it->second].cap;
    demand.slope += flows_[it->second].weight;
    ++free, --capped;
  }
  if (free == 0) demand.slope = 0;
  if (capped == 0) demand.constant = 0;
  return demand;
}

// Brings the level at which the link is full, when its groups that are not frozen grow on, nearer.
// Their demand is a concave function of the level, 0 at 0 and made of straight pieces. From a level
// that is not too high the tangent leads to one that is higher and still not too high, and at the
// right one it stays there (Newton's method). From one that is too high, the chord from 0 leads to
// a lower one and the tangent then to one that is not too high. filling->level may be infinite.
void MaxMin::Approach(Filling* filling) const {
  const Link& link = links_[filling->link];
  filling->version = link.version;
  for (bool chord = true;;) {
    double& level = filling->level;
    Demand sum;
    for (const int g : link.groups) {
      const Demand demand = DemandAt(groups_[g], level);
      sum.constant += demand.constant;
      sum.slope += demand.slope;
    }
    filling->exact = true;
    if (sum.slope == 0) {
      if (sum.constant <= link.capacity) {
        level = kInfinity;
        return;
      }
      // All are at their caps, which is too much.
      level = HighestThreshold(link, level);
      if (level == 0) return;
      continue;
    }
    const double full = std::max(0.0, (link.capacity - sum.constant) / sum.slope);
    if (full >= level) {
      filling->exact = full == level;
      level = full;
      return;
    }
    if (chord && level < kInfinity) {
      level = std::max(full, level * (link.capacity / (sum.constant + sum.slope * level)));
      chord = false;
    } else {
      // Rounding must not make it go round in circles.
      if (level < kInfinity && level - full <= 1e-12 * level) return;
      level = full;
    }
  }
}

// The largest threshold below `level` of flows that are not frozen.
double MaxMin::HighestThreshold(const Link& link, double level) const {
  double highest = 0;
  for (const int g : link.groups) {
    const Group& group = groups_[g];
    if (group.frozen) continue;
    for (const Members* members : {&group.free, &group.capped}) {
      const auto it = members->lower_bound({level, -1});
      if (it != members->begin()) highest = std::max(highest, std::prev(it)->first);
    }
  }
  return highest;
}

void MaxMin::Freeze(int index, double level, int bottleneck) {
  Group& group = groups_[index];
  while (!group.free.empty() && group.free.begin()->first < level) {
    const int flow = group.free.begin()->second;
    const Flow& f = flows_[flow];
    group.free.erase(group.free.begin());
    group.weight_sum -= f.weight;
    Join(flow, true);
    Note(flow);
  }
  while (!group.capped.empty() && group.capped.rbegin()->first >= level) {
    const int flow = group.capped.rbegin()->second;
    const Flow& f = flows_[flow];
    group.capped.erase(std::prev(group.capped.end()));
    group.cap_sum -= f.cap;
    Join(flow, false);
    Note(flow);
  }
  AddUp(group);
  if (group.level != level) {
    group.level = level;
    changed_groups_.push_back(index);
  }
  group.bottleneck = bottleneck;
  group.demand = (group.capped.empty() ? 0 : group.cap_sum) +
                 (group.free.empty() ? 0 : group.weight_sum * level);
  group.frozen = true;
  for (const int link : group.links) ++links_[link].version;
}

void MaxMin::Update() {
  moved_.clear();
  changed_groups_.clear();
  filled_.clear();
  if (!outdated_) return;
  const auto later = [](const Filling& a, const Filling& b) {
    return std::tie(a.level, a.link) > std::tie(b.level, b.link);
  };
  std::priority_queue<Filling, std::vector<Filling>, decltype(later)> fillings(later);
  for (const auto& [links, index] : group_of_) {
    groups_[index].frozen = false;
    AddUp(groups_[index]);
  }
  std::vector<int> shared;
  for (const auto& [links, index] : group_of_)
    shared.insert(shared.end(), links.begin(), links.end());
  std::ranges::sort(shared);
  shared.erase(std::unique(shared.begin(), shared.end()), shared.end());
  const auto guess = [this](const Link& link) {
    double level = -1;
    for (const int g : link.groups) {
      if (groups_[g].level < kInfinity) level = std::max(level, groups_[g].level);
    }
    return level < 0 ? kInfinity : level;
  };
  const auto push = [&fillings](const Filling& filling) {
    if (filling.level < kInfinity) fillings.push(filling);
  };
  for (const int i : shared) {
    Filling filling{guess(links_[i]), i};
    Approach(&filling);
    push(filling);
  }
  double reached = 0;
  while (!fillings.empty()) {
    Filling next = fillings.top();
    fillings.pop();
    const Link& link = links_[next.link];
    if (std::ranges::all_of(link.groups, [this](int g) { return groups_[g].frozen; })) continue;
    if (!next.exact || next.version != link.version) {
      next.level = std::max(next.level, reached);
      Approach(&next);
      push(next);
      continue;
    }
    reached = std::max(reached, next.level);
    links_[next.link].fills = true;
    for (const int g : link.groups) {
      if (!groups_[g].frozen) Freeze(g, reached, next.link);
    }
  }
  for (const auto& [links, index] : group_of_) {
    if (!groups_[index].frozen) Freeze(index, kInfinity, -1);
  }
  for (const int i : shared) {
    Link& link = links_[i];
    if (link.fills && !link.full) filled_.push_back(i);
    link.full = std::exchange(link.fills, false);
  }
  std::swap(moved_, noted_);
  noted_.clear();
  std::erase_if(moved_, [this](int flow) {
    flows_[flow].moved = false;
    return flows_[flow].links.empty();
  });
  outdated_ = false;
}

}  // namespace spes::sim
