// Weighted max-min fair shares: how links divide themselves among the flows that cross them.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace spes::sim {

// All rates grow in proportion to the weights; a flow stops at its cap, and when a link is full the
// flows over it stop (progressive filling: D. Bertsekas, R. Gallager, Data Networks, 2nd ed.,
// section 6.5.2). Follows a set of flows that changes: what a change costs grows with the logarithm
// of the number of flows, not with the number.
//
// Flows over the same links form a group: they differ by weight and cap alone, and those below
// their cap have one rate per unit of weight, the group's level. A link that a flow has to itself
// is one more cap, so that private links make no groups. With g groups and l links that groups
// share, an update is O(l · g) at worst, and about O(g + l log l) as a rule.
class MaxMin {
 public:
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();

  // Capacities, finite and not negative, in any unit, which is then that of rates and caps.
  explicit MaxMin(std::vector<double> capacities);

  // Returns the number of the flow, which is used again after Remove. `links` (indices, each at
  // most once, at least one) must stay where it is as long as the flow. The weight is positive and
  // finite: a flow of weight 2 gets what two flows of weight 1 get. The cap is not negative.
  int Add(std::span<const int> links, double weight, double cap = kInfinity);
  void Remove(int flow);
  void SetCap(int flow, double cap);
  void SetWeight(int flow, double weight);
  void SetCapacity(int link, double capacity);

  double capacity(int link) const { return links_[link].capacity; }
  // Flows over the link.
  int count(int link) const { return links_[link].count; }

  // The flow over a link that has one.
  int only(int link) const { return static_cast<int>(links_[link].sum); }

  // Brings rates up to date. Whatever follows is as of the last call.
  void Update();
  bool outdated() const { return outdated_; }

  double Rate(int flow) const;
  double weight(int flow) const { return flows_[flow].weight; }
  int group(int flow) const { return flows_[flow].group; }
  // At its cap, or at the capacity of a link of its own: its rate is its own and not its group's.
  bool capped(int flow) const { return flows_[flow].capped; }
  // Rate per unit of weight of the flows that are not capped; infinity where all are.
  double level(int group) const { return groups_[group].level; }
  // The link that holds the group at its level; -1 where none does.
  int bottleneck(int group) const { return groups_[group].bottleneck; }

  // What the last Update changed: flows that are new, or changed their group, their weight or their
  // cap, or came to it or left it; and groups with another level, which others may join later.
  const std::vector<int>& moved() const { return moved_; }
  const std::vector<int>& changed_groups() const { return changed_groups_; }
  // Whether flows share the link and it is full.
  bool full(int link) const { return links_[link].count > 1 && links_[link].full; }
  // Links shared by flows that are full since then, and were not before.
  const std::vector<int>& filled() const { return filled_; }

 private:
  struct Flow {
    std::span<const int> links;
    double weight = 1;
    double own_cap = kInfinity;
    double cap = kInfinity;  // the smallest of own_cap and the private links
    int group = -1;
    bool capped = false;
    bool moved = false;
    double threshold() const { return cap / weight; }
  };
  struct Link {
    double capacity = 0;
    int count = 0;
    std::int64_t sum = 0;     // of the numbers of its flows: the flow itself where there is one
    std::vector<int> groups;  // that cross it together with other flows
    int version = 0;          // counts the groups that stopped
    bool full = false;
    bool fills = false;  // in the update under way
  };
  // Members by cap / weight, the level at which they stop growing.
  using Members = std::set<std::pair<double, int>>;
  struct Group {
    std::vector<int> links;  // those that it shares
    Members capped, free;
    double cap_sum = 0;     // of `capped`
    double weight_sum = 0;  // of `free`
    int stale = 0;          // changes since the sums were added up
    double level = kInfinity;
    int bottleneck = -1;
    bool frozen = false;
    double demand = 0;  // at its level, once frozen
  };
  // The demand of groups around a level is constant + slope · level.
  struct Demand {
    double constant = 0;
    double slope = 0;
  };
  // When a link is full, or a level at which it is not yet.
  struct Filling {
    double level;
    int link;
    int version = -1;  // of the link for which that is so
    bool exact = false;
  };

  void Place(int flow);
  void Note(int flow);
  void Join(int flow, bool capped);
  void Leave(int flow);
  int FindGroup(const std::vector<int>& links);
  void Drop(int group);
  void AddUp(Group& group);

  Demand DemandAt(const Group& group, double level) const;
  void Approach(Filling* filling) const;
  double HighestThreshold(const Link& link, double level) const;
  void Freeze(int group, double level, int bottleneck);

  std::vector<Link> links_;
  std::vector<Flow> flows_;
  std::vector<int> free_flows_;
  std::vector<Group> groups_;
  std::vector<int> free_groups_;
  std::map<std::vector<int>, int> group_of_;  // by its links, in the order of their numbers
  std::vector<int> moved_, changed_groups_, filled_;
  std::vector<int> noted_;  // moved since the last Update
  bool outdated_ = false;
};

}  // namespace spes::sim
