// Lets the bytes of steady flows pass without packets, for the hybrid level.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "sim/link_graph.h"
#include "sim/network.h"
#include "sim/ns3/connection.h"
#include "sim/ns3/link_queue.h"
#include "sim/ns3/step_simulator.h"

namespace spes::sim {

// Flows that can fill a link together form a group; groups do not feel each other. A group begins
// with packets. Each window, about a round trip through full queues, shows what every connection
// has delivered. Once the group is steady, its timelines are put off: its packets and timers stand
// still, and its connections deliver at the rates measured, until one of them has handed over its
// last bytes to TCP or the capacity or delay of a link on the way changes. The arrival or departure
// of a flow of the group ends that at once. Then packets go on from where they were.
//
// Steady is a lone connection without random loss that has filled its bottleneck for a window in
// which it lost nothing. In other groups every connection must either have kept its rate in all
// windows, or have lost packets in several of them (in forty where losses are random, or chance
// would be taken for the rate), with rates that agree between the halves of what was measured and a
// mean known to 5 %; they pass for no longer than they were measured, then twice as long, and so
// on, as long as one measurement bears out the last. A group whose links are neither full nor lossy
// is still growing and never steady.
class FastForward {
 public:
  struct Member {
    FlowId id = 0;
    std::vector<std::shared_ptr<Connection>> streams;
    int timeline = 0;
    std::vector<int> there, back;  // links
    double loss = 0;               // of a packet on its way
  };

  // References must outlive it. `queues` [link of graph]. `segment_bytes`: the largest payload of a
  // packet.
  FastForward(StepSimulator& simulator, const LinkGraph& graph, std::deque<LinkQueue>& queues,
              int segment_bytes)
      : simulator_(simulator), graph_(graph), queues_(queues), segment_bytes_(segment_bytes) {}

  // A flow arrives, its connections not yet at work.
  void Add(Member member);

  // A flow leaves: call before its counts are read. No effect on flows that were not added.
  void Remove(FlowId id);

  // Whether its bytes pass unseen at this moment.
  bool Passes(FlowId id) const;

  // Brings all counts up to now.
  void Settle();

 private:
  struct Sample {  // of one connection at the end of a window
    ConnectionCounts counts;
    std::int64_t delivered_at;
  };
  struct Rate {  // per ns while it passes
    double delivered = 0, wire = 0, acknowledgements = 0, retransmitted = 0, retransmissions = 0,
           dropped = 0;
  };
  struct Group {
    std::vector<FlowId> members;  // ascending
    std::vector<int> full;        // links that the group can fill, ascending
    // The measurement: when it began, the connections with payload left to send, and what each had
    // counted at the ends of the windows.
    Time began{0};
    std::vector<Connection*> alive;
    std::vector<std::int64_t> drops;           // [full]
    std::vector<std::vector<Sample>> history;  // [window][alive], the beginning included
    std::vector<Time> ends;                    // [window]
    // What the last steady measurement gave, and for how many times its length it may be used.
    std::vector<Rate> rates;         // [alive]
    std::vector<double> link_drops;  // [full] per ns
    double trust = 1;
    // While bytes pass: until when, up to when they are counted, and fractions not yet counted.
    bool passing = false;
    Time until{0}, counted{0};
    std::vector<Rate> left_over;
    std::vector<double> link_left_over;
  };

  void Regroup();
  std::vector<Group> FindGroups() const;
  void Measure(int id);
  void NextWindow(int id);
  void TakeSamples(Group& group);
  void OnWindow(int id, Time began);
  Time Window(const Group& group) const;
  Time Steady(Group& group);
  bool Bound(const Group& group, const std::vector<double>& rates, double full) const;
  Time NextChange(const Group& group, Time after) const;
  void Pass(int id, Time duration);
  void Count(Group& group, Time now);
  void Stop(Group& group);
  Time Now() const { return Time(static_cast<std::int64_t>(simulator_.NowTs())); }

  StepSimulator& simulator_;
  const LinkGraph& graph_;
  std::deque<LinkQueue>& queues_;
  const int segment_bytes_;
  std::map<FlowId, Member> members_;
  std::map<int, Group> groups_;
  int next_group_ = 1;
};

}  // namespace spes::sim
