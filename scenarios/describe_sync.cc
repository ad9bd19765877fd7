// Keys, docstrings and limits of `sync`.
#include "scenarios/describe_parts.h"

namespace spes::scenarios {

static void Describe(trainer::MergeConfig& merge, Visitor& v) {
  using trainer::MergeDecay, trainer::MergeMode, trainer::MergeSimilarity;
  v.OnValue(
      {"interval", "Steps between merges, a multiple of sync.every. 0: experts are never merged.",
       kNotNegative},
      &merge.interval);
  v.OnValue({"alpha", "Strength of merging at step 0.", kShare}, &merge.alpha);
  v.OnValue({"length", "Step at which the strength reaches 0.", kNotNegative}, &merge.length);
  v.OnValue({"donors", "Most similar other experts that an expert moves towards.", AtLeast(1)},
            &merge.donors);
  OneOf<MergeSimilarity>(
      v,
      {"similarity",
       "What experts are compared by: w1 (the paper), w2, all (w1, v1 and w2 together), or the "
       "router's row of each."},
      merge.similarity,
      {{"w1", MergeSimilarity::kW1},
       {"w2", MergeSimilarity::kW2},
       {"all", MergeSimilarity::kAll},
       {"router", MergeSimilarity::kRouter}});
  OneOf<MergeDecay>(
      v,
      {"decay", "How the strength falls: linear (the paper), cosine, or constant until `length`."},
      merge.decay,
      {{"linear", MergeDecay::kLinear},
       {"cosine", MergeDecay::kCosine},
       {"constant", MergeDecay::kConstant}});
  OneOf<MergeMode>(
      v,
      {"mode",
       "experts: w1, v1 and w2 of the same donors; aligned: hidden units of a donor are put into "
       "the order that fits best first; released: the key-order defect of the released code, which "
       "mixes matrices of different experts."},
      merge.mode,
      {{"experts", MergeMode::kExperts},
       {"aligned", MergeMode::kAligned},
       {"released", MergeMode::kReleased}});
}

static void Describe(trainer::CodecConfig& codec, Visitor& v) {
  using trainer::CodecKind;
  OneOf<CodecKind>(
      v,
      {"kind",
       "raw: the model's own type; bf16; int8 and int4 with a scale for each group; top_k: the "
       "largest elements, the others 0."},
      codec.kind,
      {{"raw", CodecKind::kRaw},
       {"bf16", CodecKind::kBf16},
       {"int8", CodecKind::kInt8},
       {"int4", CodecKind::kInt4},
       {"top_k", CodecKind::kTopK}});
  v.OnValue({"differences", "Code the difference from the value published before."},
            &codec.differences);
  v.OnValue({"error_feedback", "Add what coding has lost to what is coded the next time."},
            &codec.error_feedback);
  v.OnValue({"group", "Elements with a common scale; int8 and int4.", AtLeast(2, 1 << 20)},
            &codec.group);
  v.OnValue(
      {"keep", "Share of the elements that top_k keeps.", {.min = 0, .max = 1, .above_min = true}},
      &codec.keep);
  v.OnValue({"skip_unchanged", "A block that has not changed takes its header alone."},
            &codec.skip_unchanged);
  v.OnValue({"zstd", "Level of lossless compression of the codes. 0: none.", AtLeast(0, 19)},
            &codec.zstd);
}

static void Describe(ReductionSection& reduction, Visitor& v) {
  using trainer::ReductionKind;
  OneOf<ReductionKind>(
      v,
      {"kind",
       "What the trainers' values become: their mean, the token_mean weighted by the tokens they "
       "trained on, the owner's (the first trainer's), or per element the trimmed_mean or median."},
      reduction.rule.kind,
      {{"mean", ReductionKind::kMean},
       {"token_mean", ReductionKind::kTokenMean},
       {"owner", ReductionKind::kOwner},
       {"trimmed_mean", ReductionKind::kTrimmedMean},
       {"median", ReductionKind::kMedian}});
  v.OnValue({"trim",
             "Share of the values at each end that trimmed_mean leaves out.",
             {.min = 0, .max = 0.5, .below_max = true}},
            &reduction.rule.trim);
  v.OnValue({"outer",
             "Take an outer SGD step with Nesterov momentum from the published value towards the "
             "reduced one, as DiLoCo does, instead of publishing it."},
            &reduction.outer.nesterov);
  v.OnValue({"outer_lr", "Its learning rate.", kPositive}, &reduction.outer.lr);
  v.OnValue({"outer_momentum", "Its momentum.", kProbability}, &reduction.outer.momentum);
}

static void Describe(FrozenSection& frozen, Visitor& v) {
  v.OnValue({"nodes", "Who does not train them: 3, or 0-3,7."}, &frozen.nodes);
  v.OnValue({"parts", "Beginnings of the names of shared parameters, such as layers.0."},
            &frozen.parts);
}

static void Describe(RotationSection& rotate, Visitor& v) {
  using trainer::RotatedMoments;
  v.OnValue({"every",
             "Rounds after which each expert goes on to the next node. 0: never. With "
             "allocation: load, rounds after which the shares are made anew.",
             AtLeast(0, 1e9)},
            &rotate.every);
  OneOf<RotatedMoments>(
      v,
      {"moments",
       "What becomes of its optimiser moments: handed_over with the expert, reset, "
       "or kept by each node for when the expert comes back."},
      rotate.moments,
      {{"handed_over", RotatedMoments::kHandedOver},
       {"reset", RotatedMoments::kReset},
       {"kept", RotatedMoments::kKept}});
}

static void Describe(TrustSection& trust, Visitor& v) {
  v.OnValue({"norm_bound",
             "An update may be so many times as large as the median of the other nodes'; above 1. "
             "0: sizes are not looked at.",
             kNotNegative},
            &trust.norm_bound);
  v.OnValue({"window", "Rounds whose results and refusals are remembered.", AtLeast(1, 1e6)},
            &trust.window);
  v.OnValue(
      {"strikes", "Refusals within the window after which a node is quarantined.", AtLeast(1, 1e6)},
      &trust.strikes);
  v.OnValue({"held_out",
             "Held-out tokens on which the coordinator tries out the world with each result's "
             "blocks; takes a third of what a step on as many tokens takes at speed 1. 0: it does "
             "not.",
             AtLeast(0, 1e12)},
            &trust.held_out);
  v.OnValue({"margin",
             "Nats per token by which that loss may exceed the published world's, or beyond that "
             "by which the others' results do in the median.",
             kNotNegative},
            &trust.margin);
}

namespace {

// Two codecs under one key.
void DescribeCodecs(SyncSection& sync, Visitor& v) {
  Part(v, "up", "Of what nodes send.", sync.up);
  Part(v, "down", "Of what the coordinator publishes.", sync.down);
}

void DescribeReductions(SyncSection& sync, Visitor& v) {
  Part(v, "shared", "Of the parameters that are not experts.", sync.shared);
  Part(v, "experts", "Of experts with several trainers.", sync.experts);
}

void DescribeSchedule(trainer::ScheduleConfig& schedule, Visitor& v) {
  v.OnValue({"every", "Local steps between two synchronisations, H.", AtLeast(1)}, &schedule.every);
  v.OnValue({"experts_every", "The same of experts. 0: as `every`.", kNotNegative},
            &schedule.experts_every);
  v.OnValue({"first",
             "Local steps of the first round, from where they grow to `every`. 0: `every` "
             "from the start.",
             kNotNegative},
            &schedule.first);
  v.OnValue({"growth",
             "Factor by which they grow from round to round.",
             {.min = 1, .max = 1e6, .above_min = true}},
            &schedule.growth);
  v.OnValue({"fragments", "Fragments of the model that take turns, each every `every` steps, P.",
             AtLeast(1, 1e6)},
            &schedule.fragments);
  v.OnValue(
      {"overlap", "Steps that nodes train on while a round is on its way, τ.", AtLeast(0, 1e6)},
      &schedule.overlap);
}

}  // namespace

void Describe(SyncSection& sync, Visitor& v) {
  using trainer::AllocationKind, trainer::MomentsRule, trainer::LateRule, trainer::OrphanRule;
  OneOf<SyncMethod>(v,
                    {"method",
                     "local: nodes train `every` steps on their own, then synchronise; "
                     "data_parallel: the gradients of every step are averaged."},
                    sync.method,
                    {{"local", SyncMethod::kLocal}, {"data_parallel", SyncMethod::kDataParallel}});
  DescribeSchedule(sync.schedule, v);
  v.OnValue(
      {"keep_own", "Share of its own value that a node keeps when it adopts a published one, α.",
       kProbability},
      &sync.keep_own);
  OneOf<AllocationKind>(
      v,
      {"allocation",
       "Which experts a node trains. contiguous: neighbours; round_robin: every N-th, N the number "
       "of nodes; all: every one, as in federated averaging and DiLoCo; memory, load, bandwidth: "
       "shares by the nodes' memory, by how often experts are chosen, by upload rates; list: "
       "`owners`."},
      sync.allocation,
      {{"contiguous", AllocationKind::kContiguous},
       {"round_robin", AllocationKind::kRoundRobin},
       {"all", AllocationKind::kAll},
       {"memory", AllocationKind::kMemory},
       {"load", AllocationKind::kLoad},
       {"bandwidth", AllocationKind::kBandwidth},
       {"list", AllocationKind::kList}});
  v.OnValue({"replicas", "Nodes that train each expert.", AtLeast(1, kMaxNodes)}, &sync.replicas);
  v.OnValue({"owners", "For allocation list: the trainers of each expert, such as 3 or 0-3,7."},
            &sync.owners);
  Many(v, "frozen", "Shared parameters that some nodes do not train.", sync.frozen);
  Part(v, "rotate", "Experts that change their nodes.", sync.rotate);
  v.OnSection({"reduction", "What the values of several trainers become."},
              {.visit = [&sync](Visitor& inner) { DescribeReductions(sync, inner); },
               .reset = [&sync] { sync.shared = sync.experts = {}; }});
  OneOf<MomentsRule>(v,
                     {"moments",
                      "Optimiser moments after a round: kept by each node (the paper), reset, or "
                      "averaged along with their blocks."},
                     sync.moments,
                     {{"kept", MomentsRule::kKept},
                      {"reset", MomentsRule::kReset},
                      {"averaged", MomentsRule::kAveraged}});
  Part(v, "merge", "Merge warm-up: similar experts move towards each other while young.",
       sync.merge);
  v.OnSection({"codec", "How values are written down to be sent."},
              {.visit = [&sync](Visitor& inner) { DescribeCodecs(sync, inner); },
               .reset = [&sync] { sync.up = sync.down = {}; }});
  v.OnValue({"quorum", "Uploads that end a round. 0: those of all nodes.", kNotNegative},
            &sync.quorum);
  v.OnValue(
      {"deadline", "Time after which a round ends with the uploads that are there; none: it waits.",
       kSomeTime},
      &sync.deadline);
  v.OnValue({"patience",
             "Time that a round waits for a node whose connection was lost to come back, before it "
             "goes on without it, and as long again, before the run ends, where all that came was "
             "refused; "
             "without a deadline also the time that the end of the run waits for a node that says "
             "nothing. 0 s: none, but for a minute after the coordinator began anew.",
             kDuration},
            &sync.patience);
  OneOf<OrphanRule>(
      v,
      {"orphans",
       "Experts whose trainers have all been given up: frozen stay as they are; handed_over go "
       "to the node that trains the least, until their trainers are back."},
      sync.orphans, {{"frozen", OrphanRule::kFrozen}, {"handed_over", OrphanRule::kHandedOver}});
  OneOf<LateRule>(
      v,
      {"late",
       "A result whose round has ended without it: drop, or next_round, where it is its node's "
       "contribution to the round at hand."},
      sync.late, {{"drop", LateRule::kDrop}, {"next_round", LateRule::kNextRound}});
  v.OnValue({"staleness_power",
             "A result that is s rounds late counts (1 + s)^−power of a timely one in a mean.",
             AtLeast(0, 100)},
            &sync.staleness_power);
  Part(v, "trust", "What is done against nodes that lie or are broken.", sync.trust);
}

}  // namespace spes::scenarios
