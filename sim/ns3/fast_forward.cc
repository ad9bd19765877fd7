#include "sim/ns3/fast_forward.h"

#include <ns3/nstime.h>
#include <ns3/simulator.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace spes::sim {
namespace {

// Acknowledgements take so much of what they acknowledge, at most.
constexpr double kAcknowledgements = 0.04;
// Flows whose demands stay below this share of a link do not feel each other there.
constexpr double kRoom = 0.95;
// From this share of its capacity on a link counts as full: for a lone connection, and for several,
// whose windows do not end together.
constexpr double kFullAlone = 0.99, kFull = 0.95;
constexpr int kLeastWindows = 8;
constexpr double kLargestGap = 0.1;                       // without deliveries, of the time
constexpr double kLargestSpread = 0.04;                   // of a rate that keeps, between windows
constexpr int kLeastLosses = 4, kLeastRandomLosses = 40;  // windows with losses
constexpr double kLargestDrift = 0.1;   // between the halves of a measurement, of the mean
constexpr double kLargestError = 0.05;  // standard error of the mean
constexpr double kLargestTrust = 64, kLargestRandomTrust = 4;

// Payload, in bytes per ns, that a link carries at most.
double PayloadRate(const Link& link, int segment_bytes, Time now) {
  return link.rate.At(now) / 8e9 * segment_bytes / WireBytes(segment_bytes);
}

}  // namespace

void FastForward::Add(Member member) {
  const FlowId id = member.id;
  members_.emplace(id, std::move(member));
  Regroup();
}

void FastForward::Remove(FlowId id) {
  if (!members_.contains(id)) return;
  for (auto& [group_id, group] : groups_) {
    if (std::ranges::binary_search(group.members, id)) Stop(group);
  }
  members_.erase(id);
  Regroup();
}

bool FastForward::Passes(FlowId id) const {
  return std::ranges::any_of(groups_, [id](const auto& entry) {
    return entry.second.passing && std::ranges::binary_search(entry.second.members, id);
  });
}

void FastForward::Settle() {
  for (auto& [id, group] : groups_) {
    if (group.passing) Count(group, Now());
  }
}

std::vector<FastForward::Group> FastForward::FindGroups() const {
  std::vector<double> demand(graph_.links().size(), 0);
  std::vector<int> touched;
  const auto ask = [&](int link, double bps) {
    if (demand[link] == 0) touched.push_back(link);
    demand[link] += bps;
  };
  for (const auto& [id, member] : members_) {
    double most = std::numeric_limits<double>::infinity();
    for (const int link : member.there) {
      if (graph_.links()[link].rate.constant()) most = std::min(most, graph_.links()[link].bps);
    }
    for (const int link : member.there) ask(link, most);
    for (const int link : member.back) ask(link, most * kAcknowledgements);
  }
  const auto fills = [&](int link) {
    const Link& l = graph_.links()[link];
    return !l.rate.constant() || demand[link] > kRoom * l.bps;
  };

  // Each flow is a group of its own until a link that can be filled joins it to another.
  std::map<FlowId, FlowId> parent;
  const auto root = [&parent](FlowId id) {
    while (parent[id] != id) id = parent[id] = parent[parent[id]];
    return id;
  };
  std::map<int, FlowId> first_on;  // [link that can be filled]
  for (const auto& [id, member] : members_) {
    parent[id] = id;
    for (const std::vector<int>* way : {&member.there, &member.back}) {
      for (const int link : *way) {
        if (!fills(link)) continue;
        const auto [first, fresh] = first_on.emplace(link, id);
        if (!fresh) parent[root(id)] = root(first->second);
      }
    }
  }
  std::map<FlowId, Group> by_root;
  for (const auto& [id, member] : members_) by_root[root(id)].members.push_back(id);
  for (const auto& [link, id] : first_on) by_root[root(id)].full.push_back(link);
  std::vector<Group> groups;
  for (auto& [id, group] : by_root) groups.push_back(std::move(group));
  return groups;
}

void FastForward::Regroup() {
  std::vector<Group> fresh = FindGroups();
  for (auto it = groups_.begin(); it != groups_.end();) {
    const auto same = std::ranges::find_if(fresh, [&](const Group& group) {
      return group.members == it->second.members && group.full == it->second.full;
    });
    if (same != fresh.end()) {
      fresh.erase(same);
      ++it;
    } else {
      Stop(it->second);
      it = groups_.erase(it);
    }
  }
  for (Group& group : fresh) {
    const int id = next_group_++;
    groups_.emplace(id, std::move(group));
    Measure(id);
  }
}

Time FastForward::Window(const Group& group) const {
  Time longest{0};
  for (const FlowId id : group.members) {
    const Member& member = members_.at(id);
    double rtt = 0, most = std::numeric_limits<double>::infinity();  // ns, bytes per ns
    for (const int link : member.back) rtt += ToSeconds(graph_.links()[link].DelayAt(Now())) * 1e9;
    for (const int link : member.there) {
      const Link& l = graph_.links()[link];
      rtt += ToSeconds(l.DelayAt(Now())) * 1e9;
      most = std::min(most, l.bps / 8e9);
      if (std::ranges::binary_search(group.full, link)) rtt += l.queue_bytes / (l.bps / 8e9);
    }
    constexpr double kSegments = 100;  // or a rate would be known to a few per cent only
    const double bytes =
        kSegments * WireBytes(segment_bytes_) * static_cast<double>(member.streams.size());
    longest = std::max(longest, Time(std::llround(std::max(rtt, bytes / most))));
  }
  return longest;
}

void FastForward::Measure(int id) {
  Group& group = groups_.at(id);
  group.began = Now();
  group.alive.clear();
  group.ends.clear();
  group.history.clear();
  const bool lone = group.members.size() == 1 && members_.at(group.members[0]).streams.size() == 1;
  for (const FlowId flow : group.members) {
    for (const auto& stream : members_.at(flow).streams) {
      if (stream->unsent_bytes() == 0) continue;
      if (!lone) stream->MakeFine();
      group.alive.push_back(stream.get());
    }
  }
  group.drops.clear();
  for (const int link : group.full) group.drops.push_back(queues_[link].dropped_packets());
  if (group.alive.empty()) return;  // the rest is on its way
  TakeSamples(group);
  NextWindow(id);
}

void FastForward::NextWindow(int id) {
  const Group& group = groups_.at(id);
  const StepSimulator::Within within(simulator_, 0);
  ns3::Simulator::Schedule(ns3::TimeStep(Window(group).count()),
                           [this, id, began = group.began] { OnWindow(id, began); });
}

void FastForward::TakeSamples(Group& group) {
  group.ends.push_back(Now());
  std::vector<Sample>& samples = group.history.emplace_back();
  for (const Connection* stream : group.alive) {
    samples.push_back({stream->counts(), stream->delivered_at()});
  }
}

void FastForward::OnWindow(int id, Time began) {
  const auto found = groups_.find(id);
  if (found == groups_.end() || found->second.passing || found->second.began != began) return;
  Group& group = found->second;
  if (NextChange(group, began) <= Now() ||
      std::ranges::any_of(group.alive, [](Connection* c) { return c->unsent_bytes() == 0; })) {
    Measure(id);
    return;
  }
  TakeSamples(group);
  const Time most = Steady(group);
  // What is underway when it ends must have arrived before a change.
  Time duration = std::min(most, NextChange(group, Now()) - Now() - Window(group));
  for (std::size_t i = 0; i < group.alive.size(); ++i) {
    if (group.rates.size() != group.alive.size() || group.rates[i].delivered <= 0) continue;
    const double ns =
        static_cast<double>(group.alive[i]->unsent_bytes()) / group.rates[i].delivered;
    if (ns < static_cast<double>(duration.count())) duration = Time(static_cast<std::int64_t>(ns));
  }
  if (duration < 2 * Window(group)) {
    NextWindow(id);
  } else {
    Pass(id, duration);
  }
}

// For how long the rates measured may stand for the future; sets them. 0 when not steady.
Time FastForward::Steady(Group& group) {
  const std::size_t windows = group.history.size() - 1;
  const Member& first = members_.at(group.members.front());
  const bool lone = group.members.size() == 1 && first.streams.size() == 1 && first.loss == 0;
  if (!lone && windows < kLeastWindows) return Time{0};
  // What came first, the start-up or the answer to a change, does not count.
  const std::size_t from = lone ? windows - 1 : windows / 4;
  const bool random_losses =
      std::ranges::any_of(group.members, [this](FlowId id) { return members_.at(id).loss > 0; });
  const std::size_t middle = (from + windows) / 2;
  const auto rate = [&group](std::size_t stream, std::size_t a, std::size_t b) {
    const Sample &x = group.history[a][stream], &y = group.history[b][stream];
    return y.delivered_at == x.delivered_at
               ? 0.0
               : static_cast<double>(y.counts.delivered_bytes - x.counts.delivered_bytes) /
                     static_cast<double>(y.delivered_at - x.delivered_at);
  };
  std::vector<double> means;
  for (std::size_t i = 0; i < group.alive.size(); ++i) {
    const double mean = rate(i, from, windows);
    // Between deliveries, which is exact where the whole time was one of deliveries.
    const auto time = static_cast<double>((group.ends[windows] - group.ends[from]).count());
    const auto covered = static_cast<double>(group.history[windows][i].delivered_at -
                                             group.history[from][i].delivered_at);
    if (mean <= 0 || std::abs(covered - time) > kLargestGap * time) return Time{0};
    means.push_back(mean);
    if (lone) {
      // What it loses while it recovers from a change does not stand for the future.
      const ConnectionCounts &then = group.history[from][i].counts,
                             &now = group.history[windows][i].counts;
      if (now.retransmissions > then.retransmissions ||
          now.dropped_packets > then.dropped_packets) {
        return Time{0};
      }
      continue;
    }
    double squares = 0, least = mean, most = mean;
    int losses = 0;
    for (std::size_t w = from; w < windows; ++w) {
      const double r = rate(i, w, w + 1);
      squares += (r - mean) * (r - mean);
      least = std::min(least, r);
      most = std::max(most, r);
      losses += group.history[w + 1][i].counts.retransmissions >
                group.history[w][i].counts.retransmissions;
    }
    if (losses == 0 && most - least < kLargestSpread * mean) continue;
    const auto count = static_cast<double>(windows - from);
    const double drift = std::abs(rate(i, from, middle) - rate(i, middle, windows));
    if (losses < (random_losses ? kLeastRandomLosses : kLeastLosses) ||
        drift > kLargestDrift * mean ||
        std::sqrt(squares / (count - 1) / count) > kLargestError * mean) {
      return Time{0};
    }
  }
  if (!Bound(group, means, lone ? kFullAlone : kFull)) return Time{0};

  bool agrees = group.rates.size() == means.size();
  for (std::size_t i = 0; agrees && i < means.size(); ++i) {
    agrees = std::abs(means[i] - group.rates[i].delivered) < kLargestDrift * means[i];
  }
  group.trust =
      agrees ? std::min(random_losses ? kLargestRandomTrust : kLargestTrust, 2 * group.trust) : 1;
  group.rates.clear();
  const double elapsed = ToSeconds(Now() - group.began) * 1e9;
  for (std::size_t i = 0; i < means.size(); ++i) {
    const ConnectionCounts &then = group.history[from][i].counts,
                           &now = group.history[windows][i].counts;
    // All else in proportion to the payload: sent, or at the receiver.
    const auto per = [&](std::int64_t ConnectionCounts::*what, std::int64_t ConnectionCounts::*of) {
      return means[i] * static_cast<double>(now.*what - then.*what) /
             static_cast<double>(std::max<std::int64_t>(1, now.*of - then.*of));
    };
    using Counts = ConnectionCounts;
    group.rates.push_back(
        {.delivered = means[i],
         .wire = per(&Counts::wire_bytes, &Counts::sent_bytes),
         .acknowledgements = per(&Counts::acknowledgement_bytes, &Counts::delivered_bytes),
         .retransmitted = per(&Counts::retransmitted_bytes, &Counts::sent_bytes),
         .retransmissions = per(&Counts::retransmissions, &Counts::sent_bytes),
         .dropped = per(&Counts::dropped_packets, &Counts::sent_bytes)});
  }
  group.link_drops.clear();
  for (std::size_t i = 0; i < group.full.size(); ++i) {
    const std::int64_t drops = queues_[group.full[i]].dropped_packets() - group.drops[i];
    group.link_drops.push_back(static_cast<double>(drops) / elapsed);
  }
  return lone ? kNever : Time(std::llround(group.trust * elapsed));
}

// Whether each flow either meets random loss or crosses a link that is full: then what holds its
// rate is known.
bool FastForward::Bound(const Group& group, const std::vector<double>& rates, double full) const {
  std::map<int, double> load;
  std::size_t i = 0;
  std::map<const Connection*, double> rate_of;
  for (const Connection* stream : group.alive) rate_of[stream] = rates[i++];
  for (const FlowId id : group.members) {
    const Member& member = members_.at(id);
    for (const auto& stream : member.streams) {
      for (const int link : member.there) load[link] += rate_of[stream.get()];
    }
  }
  return std::ranges::all_of(group.members, [&](FlowId id) {
    const Member& member = members_.at(id);
    return member.loss > 0 || std::ranges::any_of(member.there, [&](int link) {
             const double capacity = PayloadRate(graph_.links()[link], segment_bytes_, Now());
             return load[link] >= full * capacity && load[link] <= (2 - full) * capacity;
           });
  });
}

Time FastForward::NextChange(const Group& group, Time after) const {
  Time next = kNever;
  for (const FlowId id : group.members) {
    const Member& member = members_.at(id);
    for (const std::vector<int>* way : {&member.there, &member.back}) {
      for (const int link : *way) {
        const Link& l = graph_.links()[link];
        next = std::min({next, l.rate.NextChange(after), l.NextDelayChange(after)});
      }
    }
  }
  return next;
}

void FastForward::Pass(int id, Time duration) {
  Group& group = groups_.at(id);
  group.passing = true;
  group.counted = Now();
  group.until = Now() + duration;
  group.left_over.assign(group.alive.size(), Rate{});
  group.link_left_over.assign(group.full.size(), 0);
  for (const FlowId flow : group.members) {
    simulator_.PutOff(members_.at(flow).timeline, duration.count());
  }
  for (const int link : group.full) queues_[link].Shift(Now().count(), duration.count());
  const StepSimulator::Within within(simulator_, 0);
  ns3::Simulator::Schedule(ns3::TimeStep(duration.count()), [this, id, until = group.until] {
    const auto found = groups_.find(id);
    if (found == groups_.end() || !found->second.passing || found->second.until != until) return;
    Count(found->second, until);
    found->second.passing = false;
    Measure(id);
  });
}

void FastForward::Count(Group& group, Time now) {
  const auto elapsed = static_cast<double>((now - group.counted).count());
  group.counted = now;
  // Whole units; what is left over counts the next time.
  const auto take = [elapsed](double rate, double& left_over) {
    const double sum = rate * elapsed + left_over;
    const double whole = std::floor(sum);
    left_over = sum - whole;
    return static_cast<std::int64_t>(whole);
  };
  std::size_t i = 0;
  for (const FlowId id : group.members) {
    const Member& member = members_.at(id);
    for (const auto& stream : member.streams) {
      if (i == group.alive.size() || group.alive[i] != stream.get()) continue;
      const Rate& rate = group.rates[i];
      Rate& rest = group.left_over[i++];
      ConnectionCounts passed;
      passed.delivered_bytes =
          std::min(stream->unsent_bytes(), take(rate.delivered, rest.delivered));
      passed.wire_bytes = take(rate.wire, rest.wire);
      passed.acknowledgement_bytes = take(rate.acknowledgements, rest.acknowledgements);
      passed.retransmitted_bytes = take(rate.retransmitted, rest.retransmitted);
      passed.retransmissions = take(rate.retransmissions, rest.retransmissions);
      passed.dropped_packets = take(rate.dropped, rest.dropped);
      stream->PassUnseen(passed);
      for (const int link : member.there) queues_[link].CountUnseen(passed.wire_bytes, 0);
      for (const int link : member.back) {
        queues_[link].CountUnseen(passed.acknowledgement_bytes, 0);
      }
    }
  }
  for (std::size_t l = 0; l < group.full.size(); ++l) {
    queues_[group.full[l]].CountUnseen(0, take(group.link_drops[l], group.link_left_over[l]));
  }
}

void FastForward::Stop(Group& group) {
  if (!group.passing) return;
  Count(group, Now());
  group.passing = false;
  const Time ahead = group.until - Now();
  for (const FlowId flow : group.members) {
    simulator_.PutOff(members_.at(flow).timeline, -ahead.count());
  }
  for (const int link : group.full) queues_[link].Shift(group.until.count(), -ahead.count());
}

}  // namespace spes::sim
