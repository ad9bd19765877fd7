#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "scenarios/sync_builder.h"
#include "scenarios/topology_builder.h"

namespace spes::scenarios {

namespace {

// One rule after the other; each names the key to change.
class Rules {
 public:
  Rules(const Scenario& scenario, const Origins& origins) : s_(scenario), origins_(origins) {}

  void Check() const {
    Schedule();
    Merge();
    Codecs();
    DataParallel();
    Allocation();
    Rotation();
    LateResults();
    Trust();
    Poison();
  }

 private:
  void Require(bool holds, const std::string& key, const std::string& why) const {
    if (!holds) origins_.Fail("sync." + key, why);
  }

  // Whether every round synchronises all blocks.
  bool WholeRounds() const {
    const trainer::ScheduleConfig& schedule = s_.sync.schedule;
    return schedule.fragments == 1 &&
           (schedule.experts_every == 0 || schedule.experts_every == schedule.every);
  }

  void Schedule() const {
    origins_.Blame("sync", "", [&] { trainer::Validate(BuildSchedule(s_)); });
    Require(s_.sync.keep_own == 0 || s_.sync.schedule.overlap > 0, "keep_own",
            "is for what nodes have trained while a round was on its way; give sync.overlap");
  }

  void Merge() const {
    const trainer::MergeConfig& merge = s_.sync.merge;
    if (merge.interval == 0) return;
    const trainer::ScheduleConfig& schedule = s_.sync.schedule;
    Require(schedule.fragments == 1, "merge.interval",
            fmt::format("asks for merging, which takes all experts at once, but they are "
                        "synchronised in {} fragments",
                        schedule.fragments));
    const int own = schedule.experts_every;
    const std::int64_t every = own > 0 ? own : schedule.every;
    const bool grows = schedule.first > 0 && schedule.first < schedule.every;
    if (!grows && merge.interval % every != 0) {
      const std::int64_t below = merge.interval / every * every;
      origins_.Fail("sync.merge.interval",
                    fmt::format("is {}, not a multiple of sync.{}, {}; {} would do", merge.interval,
                                own > 0 ? "experts_every" : "every", every,
                                below > 0 ? fmt::format("{} or {}", below, below + every)
                                          : fmt::format("{}", every)));
    }
    Require(merge.length > 0, "merge.length",
            "is 0, so that nothing would ever be merged; give the step at which merging ends, or "
            "set sync.merge.interval to 0");
    Require(s_.model.experts >= 2, "merge.interval",
            fmt::format("asks for merging, but the model has {} experts", s_.model.experts));
  }

  void Codecs() const {
    origins_.Blame("sync.codec.up", "", [&] { trainer::Validate(s_.sync.up); });
    origins_.Blame("sync.codec.down", "", [&] { trainer::Validate(s_.sync.down); });
    for (const ReductionSection* reduction : {&s_.sync.shared, &s_.sync.experts}) {
      const std::string key =
          reduction == &s_.sync.shared ? "sync.reduction.shared" : "sync.reduction.experts";
      origins_.Blame(key, "", [&] { trainer::Validate(reduction->rule); });
      origins_.Blame(key, "", [&] { trainer::Validate(reduction->outer); });
    }
  }

  void DataParallel() const {
    const SyncSection& sync = s_.sync;
    if (sync.method != SyncMethod::kDataParallel) return;
    Require(sync.schedule.every == 1, "every",
            fmt::format("is {}; with method data_parallel every step is a round: set it to 1",
                        sync.schedule.every));
    Require(sync.allocation == trainer::AllocationKind::kAll, "allocation",
            "must be all with method data_parallel, where every node computes all gradients");
    Require(WholeRounds(), "experts_every", "has no meaning with method data_parallel");
    Require(sync.frozen.empty(), "frozen", "has no meaning with method data_parallel");
    Require(!sync.shared.outer.nesterov, "reduction.shared.outer",
            "has no meaning with method data_parallel, whose optimiser is AdamW on the world");
    Require(!sync.experts.outer.nesterov, "reduction.experts.outer",
            "has no meaning with method data_parallel, whose optimiser is AdamW on the world");
    Require(sync.moments == trainer::MomentsRule::kKept, "moments",
            "has no meaning with method data_parallel: nodes have no moments");
    Require(!sync.up.differences, "codec.up.differences",
            "has no meaning with method data_parallel: gradients are no differences from anything");
  }

  void Allocation() const {
    using trainer::AllocationKind;
    const SyncSection& sync = s_.sync;
    const auto table = trainer::MakeBlockTable(s_.model);
    if (sync.allocation == AllocationKind::kMemory) {
      const auto capacities = BuildCapacities(s_, *table);
      for (std::size_t n = 0; n < capacities.size(); ++n) {
        Require(capacities[n].memory_bytes > 0, "allocation",
                fmt::format("is memory, but node {}'s does not hold what every node needs; see "
                            "nodes.groups.*.memory",
                            n));
      }
    }
    Require(sync.allocation != AllocationKind::kLoad || sync.rotate.every > 0, "rotate.every",
            "is 0, but allocation load needs the rounds after which shares are made anew");
    Require(sync.allocation == AllocationKind::kList || sync.owners.empty(), "owners",
            "is for allocation list");
    for (std::size_t e = 0; e < sync.owners.size(); ++e) {
      origins_.Blame(fmt::format("sync.owners.{}", e), "",
                     [&] { ParseNodes(sync.owners[e], NodeCount(s_)); });
    }
    for (std::size_t f = 0; f < sync.frozen.size(); ++f) {
      origins_.Blame(fmt::format("sync.frozen.{}.nodes", f), "",
                     [&] { ParseNodes(sync.frozen[f].nodes, NodeCount(s_)); });
    }
    origins_.Blame("sync.allocation", "", [&] {
      const trainer::Allocation allocation = BuildAllocation(s_, *table);
      for (int node = 0; node < allocation.nodes(); ++node) {
        if (!allocation.blocks(node).empty()) continue;
        throw std::invalid_argument(fmt::format("leaves nothing to train for node {}", node));
      }
    });
    const trainer::Allocation allocation = BuildAllocation(s_, *table);
    bool everywhere = true;  // whether all nodes train all experts
    for (trainer::BlockId id = 0; id < table->size(); ++id) {
      everywhere &= (*table)[id].kind != trainer::BlockKind::kExpert ||
                    static_cast<int>(allocation.trainers(id).size()) == allocation.nodes();
    }
    const std::string useless = "means nothing where every node trains every expert";
    if (everywhere && s_.training.routing_bias != 0) {
      origins_.Fail("training.routing_bias", useless);
    }
    if (everywhere && s_.training.candidates > 1) origins_.Fail("training.candidates", useless);
  }

  void Rotation() const {
    if (s_.sync.rotate.every == 0) return;
    Require(WholeRounds(), "rotate.every",
            "asks for experts that change their nodes, which takes rounds that synchronise all "
            "blocks: one fragment, one interval");
    const trainer::MomentsRule rule = s_.sync.moments;
    const trainer::RotatedMoments rotated = s_.sync.rotate.moments;
    Require(rule != trainer::MomentsRule::kReset || rotated == trainer::RotatedMoments::kReset,
            "rotate.moments", "must be reset where sync.moments is reset in every round");
    Require(
        rule != trainer::MomentsRule::kAveraged || rotated == trainer::RotatedMoments::kHandedOver,
        "rotate.moments",
        "must be handed_over where sync.moments is averaged: they travel with their blocks");
    const auto table = trainer::MakeBlockTable(s_.model);
    const trainer::Allocation allocation = BuildAllocation(s_, *table);
    for (int node = 0; node < allocation.nodes(); ++node) {
      const auto& blocks = allocation.blocks(node);
      Require(std::any_of(blocks.begin(), blocks.end(),
                          [&](trainer::BlockId id) {
                            return (*table)[id].kind == trainer::BlockKind::kShared;
                          }),
              "frozen",
              fmt::format("leaves node {} no shared parameter, and its experts go to other nodes",
                          node));
    }
    Require(
        s_.sync.keep_own == 0, "keep_own",
        "cannot be kept of experts that change their nodes; set sync.rotate.every or this to 0");
    Require(s_.network.exchange.pattern == sim::ExchangePattern::kCoordinator, "rotate.every",
            fmt::format("asks for experts that change their nodes, which an exchange by {} cannot",
                        sim::Name(s_.network.exchange.pattern)));
  }

  void LateResults() const {
    const SyncSection& sync = s_.sync;
    if (sync.late == trainer::LateRule::kDrop) {
      Require(sync.staleness_power == 0, "staleness_power",
              "is of late results that count, and sync.late is drop");
      return;
    }
    Require(sync.quorum > 0 || sync.deadline, "late",
            "is next_round, but no result is ever late without sync.quorum or sync.deadline");
    Require(WholeRounds() && sync.rotate.every == 0, "late",
            "is next_round, which takes rounds that all ask for the same blocks: one fragment, one "
            "interval, no rotation");
    const auto mean = [](const ReductionSection& reduction) {
      return reduction.rule.kind == trainer::ReductionKind::kMean ||
             reduction.rule.kind == trainer::ReductionKind::kTokenMean;
    };
    Require(sync.staleness_power == 0 || mean(sync.shared) || mean(sync.experts), "staleness_power",
            "is a weight in means, and nothing is reduced by a mean");
  }

  void Trust() const {
    const TrustSection& trust = s_.sync.trust;
    if (trust.norm_bound == 0 && trust.held_out == 0) return;
    Require(trust.norm_bound == 0 || trust.norm_bound > 1, "trust.norm_bound",
            fmt::format("is {:g}, but the others' median itself must be allowed: give more than 1, "
                        "or 0 for no bound",
                        trust.norm_bound));
    Require(trust.norm_bound == 0 || NodeCount(s_) >= 4, "trust.norm_bound",
            fmt::format("compares each node with at least three others, and there are {} nodes",
                        NodeCount(s_)));
    Require(trust.norm_bound == 0 || s_.sync.quorum == 0 || s_.sync.quorum >= 4, "quorum",
            fmt::format("is {}, too few for sync.trust.norm_bound, which compares each result with "
                        "those of at least three other nodes: give 4 or more, or 0 for all",
                        s_.sync.quorum));
    Require(trust.held_out == 0 || s_.sync.method == SyncMethod::kLocal, "trust.held_out",
            "tries out what nodes have trained; with method data_parallel they send gradients");
    Require(s_.network.exchange.pattern == sim::ExchangePattern::kCoordinator,
            trust.norm_bound > 0 ? "trust.norm_bound" : "trust.held_out",
            fmt::format("is the coordinator's to look after, which does not see what is exchanged "
                        "by {}",
                        sim::Name(s_.network.exchange.pattern)));
  }

  void Poison() const {
    using trainer::PoisonKind;
    for (std::size_t g = 0; g < s_.nodes.groups.size(); ++g) {
      const trainer::PoisonConfig& poison = s_.nodes.groups[g].poison;
      const std::string key = fmt::format("nodes.groups.{}.poison.", g);
      const bool has_factor = poison.kind == PoisonKind::kNoise ||
                              poison.kind == PoisonKind::kSignFlip ||
                              poison.kind == PoisonKind::kScale;
      if (poison.factor != 1 && !has_factor) {
        origins_.Fail(key + "factor", "is of the kinds noise, sign_flip and scale");
      }
      if (poison.after > 0 && poison.kind == PoisonKind::kNone) {
        origins_.Fail(key + "after", "means nothing for nodes that are not poisoned");
      }
      if (poison.kind == PoisonKind::kStale && s_.sync.method == SyncMethod::kDataParallel) {
        origins_.Fail(key + "kind", "cannot be stale with method data_parallel: gradients are not");
      }
    }
  }

  const Scenario& s_;
  const Origins& origins_;
};

}  // namespace

void ValidateSync(const Scenario& scenario, const Origins& origins) {
  Rules(scenario, origins).Check();
}

}  // namespace spes::scenarios
