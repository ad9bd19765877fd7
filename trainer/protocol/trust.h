// Whether a result can be believed, by what those of the other nodes are like.
//
// Sizes. Of each result are known: the size of its update for each kind of blocks, ‖own −
// published‖₂ per √element (of gradients ‖g‖₂), relative to how far its steps could move an
// element, and its tokens per step. Each may be at most `norm_bound` times the median of the other
// nodes' results that were taken in the last `window` rounds. A multiple of the median and not
// median + k · MAD: honest nodes are often so alike that their MAD is next to nothing, and then k
// would have to be as large as the data are uneven. Bounding the norm of updates: Sun et al., arXiv
// 1911.07963; learning the bound from a quantile of the norms seen: Andrew et al., arXiv
// 1905.03871. What learning rates do to sizes (warm-up, decay, rounds of unequal length) is divided
// out, so that the calm at the beginning of a warm-up is no bound for its end. A result that is
// late is measured like any other: from the values that it was trained from, in its own steps.
//
// Held-out loss. That of the published world with a result's blocks in place of its own may exceed
// the published world's by at most `margin`, or by `margin` more than the median of the others'
// does: where nodes' data differ, the work of one alone may make the whole worse, and no one is to
// blame. Source of the idea: Zeno, arXiv 1805.10032, and Zeno++, arXiv 1903.07020.
//
// Order. A result that the earlier rounds vouch for is taken at once. One that they do not is put
// aside until its round closes, and then held against the others of its own round too: what has
// changed for all is no lie, and in the first round there is nothing else. Both verdicts depend on
// the set of results and never on the order in which they came. The memory that putting aside takes
// is at most what the same round can take when its uploads come in reverse order: an upload cannot
// be added before those of lower nodes.
//
// What is refused unseen (damaged, not finite, not what was ordered) counts against its node too.
//
// Limits. It takes a majority of honest nodes: with fewer than three others nobody is judged by
// sizes, and the margin alone bounds the loss; a round of which all is refused leaves the world as
// it is. Sizes do not see a direction: an update with its sign flipped passes. A node that trains
// alone is not found out by small lies that stay within the bounds, moments that travel are not
// looked at, and a block that is small beside its kind's others may grow more than the bound says.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/units.h"
#include "trainer/protocol/messages.h"
#include "trainer/sync/world.h"

namespace spes::trainer {

struct TrustConfig {
  double norm_bound = 0;  // times the others' median; above 1; 0: sizes are not looked at
  int window = 8;         // rounds that are remembered
  int strikes = 3;        // refusals within the window after which a node is quarantined
  double margin = 0.05;   // nats
  // Loss of a world on held-out text; called on other threads, from several at once. Empty: results
  // are not tried out.
  std::function<double(const World&)> held_out = {};
  sim::Time held_out_time{0};  // charged for a call; one after the other
  // How far the step with this number can move a parameter: its learning rate. Empty: sizes are
  // compared as they are.
  std::function<double(std::int64_t step)> step_size = {};

  bool on() const { return norm_bound > 0 || held_out; }
};

// What one result is like. NaN: it has nothing of the kind, or that is not looked at.
struct Evidence {
  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  double shared = kNone, experts = kNone;  // relative size of the update per √element
  double tokens = kNone;                   // per step
  double loss_rise = kNone;                // nats; infinite where the loss is not finite
};

// Sizes of an offer. `squares` [block of the offer]: ‖own − published‖² or ‖gradient‖²; `reach`
// [block of the offer]: how far its steps could move an element, > 0.
Evidence SizesOf(const Offer& offer, std::span<const double> squares, std::span<const double> reach,
                 const BlockTable& table);

class Trust {
 public:
  // Throws std::invalid_argument, one line, on a bound, window or number of strikes out of range.
  explicit Trust(const TrustConfig& config);

  // A result of the round at hand, at most one of each node besides those that are of no use. True:
  // it is taken. False: it waits for Judge.
  bool Takes(NodeId node, const Evidence& evidence);

  // A result that came in the round at hand and is of no use to anyone: damaged, not finite, not
  // what was ordered. Its node counts as refused in this round, once, whatever else it sends.
  // `fault`: why, not empty.
  void Refuse(NodeId node, std::string fault);

  // Of the results that wait, ascending: why it is not taken, one line; empty: it is taken. None
  // waits afterwards.
  struct Verdict {
    NodeId node = 0;
    std::string fault;
  };
  std::vector<Verdict> Judge();

  // The round is over: remembers what was taken and what was refused. Returns who is to be
  // quarantined from now on and why, ascending. Results that still wait are forgotten.
  std::vector<Verdict> EndRound(std::int32_t round);

  // All that outlives a round.
  std::vector<double> State() const;
  // Throws std::invalid_argument, one line, on what is no such state.
  void Restore(std::span<const double> state);

 private:
  enum class Standing { kNone, kWaits, kTaken };
  struct Result {
    Evidence evidence;
    Standing standing = Standing::kNone;
    std::string fault;  // of what was refused; another result of the round may be taken
  };
  struct Sample {
    std::int32_t round = 0;
    NodeId node = 0;
    Evidence evidence;
  };
  struct Refusal {
    std::int32_t round = 0;
    NodeId node = 0;
  };
  using Values = std::vector<std::pair<NodeId, double>>;
  Values Past(double Evidence::*what, NodeId node) const;
  Values Present(double Evidence::*what, NodeId node) const;
  std::string Fault(NodeId node, const Evidence& evidence, bool with_present) const;

  TrustConfig config_;
  std::vector<Sample> samples_;    // taken, in the order of rounds and nodes
  std::vector<Refusal> refusals_;  // likewise
  std::map<NodeId, Result> round_;
};

}  // namespace spes::trainer
