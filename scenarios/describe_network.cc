#include <chrono>

#include "scenarios/describe_parts.h"

namespace spes::scenarios {

constexpr Limits kSomeSeconds = {.min = 1, .max = 100 * 86400.0};

constexpr std::string_view kLossDoc = "Probability that a packet is lost, in each direction.";
constexpr std::string_view kBurstDoc =
    "Packets that are lost in a row, on average; 1: each by itself.";

// Static and not in a nameless namespace, where the templates would not find them.
static void Describe(sim::Diurnal& diurnal, Visitor& v) {
  v.OnValue({"depth",
             "Share of the capacity that is gone at the busiest time; between, it comes and goes "
             "as a cosine.",
             kProbability},
            &diurnal.depth);
  v.OnValue({"period", "From one busiest time to the next.", kSomeSeconds}, &diurnal.period);
  v.OnValue({"busiest", "The first busiest time, from the start of the run.", kDuration},
            &diurnal.busiest);
}

static void Describe(sim::Outage& outage, Visitor& v) {
  v.OnValue({"at", "When it begins, from the start of the run.", kDuration}, &outage.at);
  v.OnValue({"duration", "How long nothing passes.", kSomeTime}, &outage.duration);
  v.OnValue(
      {"every", "It comes again after so long, counted from its beginning. 0: once.", kDuration},
      &outage.every);
}

static void Describe(sim::RttStep& step, Visitor& v) {
  v.OnValue({"at", "From when on, from the start of the run.", kDuration}, &step.at);
  v.OnValue({"extra", "What the round trip is longer than `rtt`, until the next step.", kDuration},
            &step.extra);
}

static void Describe(sim::CrossTraffic& traffic, Visitor& v) {
  v.OnValue({"rate", "What it takes off the capacity.", kRate, Unit::kBitRate}, &traffic.bps);
  v.OnValue({"on", "Mean time that it is there (exponential). 0 with off: 0: always.", kDuration},
            &traffic.mean_on);
  v.OnValue({"off", "Mean time that it is not.", kDuration}, &traffic.mean_off);
}

static void Describe(sim::Conditions& conditions, Visitor& v) {
  Part(v, "diurnal", "Less capacity at the busy hour.", conditions.diurnal);
  Many(v, "outages", "Times in which nothing passes.", conditions.outages);
  Many(v, "rtt_steps", "Changes of the round trip, in the order of time.", conditions.rtt_steps);
  Many(v, "cross_traffic", "Traffic of others that does not yield; of each direction for itself.",
       conditions.cross_traffic);
}

static void OnConditions(Visitor& v, sim::Conditions& conditions) {
  v.OnSection({"conditions", "How the link changes over time."},
              {.visit = [&conditions](Visitor& inner) { Describe(conditions, inner); },
               .reset = [&conditions] { conditions = {}; },
               .idle =
                   [&conditions] {
                     return conditions.diurnal.depth == 0 && conditions.outages.empty() &&
                            conditions.rtt_steps.empty() && conditions.cross_traffic.empty();
                   }});
}

static void Describe(NetworkPath& path, Visitor& v) {
  v.OnValue({"a", "A site."}, &path.a);
  v.OnValue({"b", "Another site, or the same for the path within it."}, &path.b);
  v.OnValue({"rtt", "Round trip; half of it in each direction.", kDuration}, &path.rtt);
  v.OnValue({"rate", "Rate from a to b, shared by all that pass.", kRate, Unit::kBitRate},
            &path.bps);
  v.OnValue({"rate_back", "Rate from b to a; none: the same.", kRate, Unit::kBitRate},
            &path.bps_back);
  v.OnValue({"loss", kLossDoc, kProbability}, &path.loss);
  v.OnValue({"loss_burst", kBurstDoc, AtLeast(1)}, &path.loss_burst);
  v.OnValue({"queue_bdp", "Buffer of each direction in bandwidth-delay products.", kPositive},
            &path.queue_bdp);
  v.OnValue(
      {"trace",
       "Capacity from a to b in Mahimahi's format, in place of `rate`. It starts again at its "
       "end.",
       {},
       Unit::kInputFile},
      &path.trace_file);
  v.OnValue({"trace_back",
             "The same from b to a. Empty: `rate_back`, or without that as from a to b.",
             {},
             Unit::kInputFile},
            &path.trace_back_file);
  OnConditions(v, path.conditions);
}

static void Describe(NetworkSite& site, Visitor& v) {
  v.OnValue({"name", "The site."}, &site.name);
  Part(v, "link", "The link that its hosts share on their way to other sites.", site.link);
}

static void Describe(BackgroundSection& background, Visitor& v) {
  v.OnValue({"from", "The sender's site. Empty: the coordinator's."}, &background.from);
  v.OnValue({"to", "The receiver's site. Empty: the coordinator's."}, &background.to);
  v.OnValue({"flows", "Transfers at once.", AtLeast(1, 10'000)}, &background.flows);
  v.OnValue({"streams", "Parallel connections of each.", AtLeast(1, 1000)}, &background.streams);
  v.OnValue({"size", "Bytes of a transfer; 0 B: it never ends.", kNotNegative, Unit::kByteSize},
            &background.size_bytes);
  v.OnValue({"pause", "Mean pause after a transfer (exponential).", kDuration},
            &background.mean_pause);
  v.OnValue({"link_rate",
             "Access link of the two hosts between which it runs; they have no other traffic.",
             kRate, Unit::kBitRate},
            &background.link_bps);
}

static void Describe(sim::TcpConfig& tcp, Visitor& v) {
  OneOf<std::string>(v, {"congestion", "Congestion control."}, tcp.congestion,
                     {{"cubic", "cubic"}, {"reno", "reno"}});
  v.OnValue({"segment_bytes", "Payload of a segment (MSS) in bytes.", {.min = 536, .max = 65000}},
            &tcp.segment_bytes);
  v.OnValue({"initial_window", "Initial congestion window in segments.", AtLeast(1, 1000)},
            &tcp.initial_window);
  OneOf<std::string>(
      v,
      {"after_idle",
       "What a transfer makes of the last one over the same connections. remembered: it goes back "
       "to "
       "the windows learnt, as Linux does; fresh: it begins as on new connections. Traffic in the "
       "background is always fresh."},
      tcp.after_idle, {{"remembered", "remembered"}, {"fresh", "fresh"}});
  v.OnValue({"streams", "Parallel connections that share one transfer.", AtLeast(1)}, &tcp.streams);
  v.OnValue({"coarse_factor",
             "Where the level sends coarse segments, they are up to so many times larger.",
             AtLeast(1, 100)},
            &tcp.coarse_factor);
  v.OnValue({"stall_timeout", "A transfer without progress for so long has failed.", kSomeTime},
            &tcp.stall_timeout);
  v.OnValue({"seed", "Seed of the random losses and conditions."}, &tcp.seed);
}

static void Describe(ExchangeSection& exchange, Visitor& v) {
  using sim::ExchangePattern;
  OneOf<ExchangePattern>(
      v,
      {"pattern",
       "coordinator: every node sends to the coordinator and receives from it; coordinators: "
       "several of them, with the blocks divided among them; ring: reduce-scatter and all-gather "
       "around the nodes; direct: each to each; tree: through the first node of every site. The "
       "trained world does not depend on it."},
      exchange.pattern,
      {{"coordinator", ExchangePattern::kCoordinator},
       {"coordinators", ExchangePattern::kCoordinators},
       {"ring", ExchangePattern::kRing},
       {"direct", ExchangePattern::kDirect},
       {"tree", ExchangePattern::kTree}});
  v.OnValue({"coordinators",
             "With the pattern coordinators: the sites of further coordinators beside the one at "
             "coordinator_site, each with a coordinator_link of its own."},
            &exchange.coordinators);
  v.OnValue(
      {"sends",
       "With other patterns than coordinator: transfers that a host sends at once, the others "
       "wait. 0: no limit.",
       kNotNegative},
      &exchange.sends);
}

static void DescribeMatrices(NetworkSection& network, Visitor& v) {
  v.OnValue({"matrix",
             "CSV with the columns a, b, rtt_ms (round trip) and gbps: the paths that are not in "
             "`paths`.",
             {},
             Unit::kInputFile},
            &network.matrix);
  v.OnValue({"latency_matrix",
             "In place of `matrix`: square CSV of round trips in ms, symmetric, sites in the first "
             "row and column. Blank or -: no path.",
             {},
             Unit::kInputFile},
            &network.latency_matrix);
  v.OnValue({"rate_matrix",
             "With `latency_matrix`: square CSV of rates in Mbps, from the row's site to the "
             "column's.",
             {},
             Unit::kInputFile},
            &network.rate_matrix);
  v.OnValue({"path_rate", "Rate of the paths of `latency_matrix` where there is no `rate_matrix`.",
             kRate, Unit::kBitRate},
            &network.path_bps);
  v.OnValue({"path_loss", "Packet loss on the paths of a matrix, each direction.", kProbability},
            &network.path_loss);
  v.OnValue({"path_loss_burst", "Of the paths of a matrix, as loss_burst of a path.", AtLeast(1)},
            &network.path_loss_burst);
  v.OnValue({"path_queue_bdp", "Buffers of the paths of a matrix, in bandwidth-delay products.",
             kPositive},
            &network.path_queue_bdp);
}

void Describe(LinkSection& link, Visitor& v) {
  v.OnValue({"down", "Rate towards the host or site.", kRate, Unit::kBitRate}, &link.down_bps);
  v.OnValue({"up", "Rate from it.", kRate, Unit::kBitRate}, &link.up_bps);
  v.OnValue({"rtt", "Round trip over this link alone; half of it in each direction.", kDuration},
            &link.rtt);
  v.OnValue({"loss", kLossDoc, kProbability}, &link.loss);
  v.OnValue({"loss_burst", kBurstDoc, AtLeast(1)}, &link.loss_burst);
  v.OnValue({"queue_bdp",
             "Buffer in front of each direction, in bandwidth-delay products: its rate times the "
             "longest round trip through it.",
             kPositive},
            &link.queue_bdp);
  v.OnValue({"down_trace",
             "Capacity in Mahimahi's format, in place of `down`. It starts again at its end.",
             {},
             Unit::kInputFile},
            &link.down_trace_file);
  v.OnValue({"up_trace", "The same in place of `up`.", {}, Unit::kInputFile}, &link.up_trace_file);
  OnConditions(v, link.conditions);
}

void Describe(NetworkSection& network, Visitor& v) {
  OneOf<Fidelity>(
      v,
      {"fidelity",
       "How much of the network is modelled. ideal: latency and fair shares of the links, without "
       "TCP; fluid: these and TCP's start-up and losses as laws; hybrid: packets until flows are "
       "steady, then fast-forward; coarse: packets of larger segments; packet: every TCP segment."},
      network.fidelity,
      {{"ideal", Fidelity::kIdeal},
       {"fluid", Fidelity::kFluid},
       {"hybrid", Fidelity::kHybrid},
       {"coarse", Fidelity::kCoarse},
       {"packet", Fidelity::kPacket}});
  OneOf<sim::Routing>(
      v,
      {"routing",
       "direct: traffic between two sites takes the path between them; shortest: it takes the "
       "paths with the smallest sum of round trips, if need be through other sites."},
      network.routing, {{"direct", sim::Routing::kDirect}, {"shortest", sim::Routing::kShortest}});
  Many(v, "sites", "Sites whose hosts share an access link on their way to other sites.",
       network.sites);
  Many(v, "paths",
       "Paths between sites, each pair once. Within a site none is needed: no delay, 100 Gbps.",
       network.paths);
  DescribeMatrices(network, v);
  v.OnValue({"trace_interval",
             "Capacity traces are averaged over so long.",
             {.min = 0.001, .max = 86400}},
            &network.trace_interval);
  v.OnValue({"coordinator_site", "Where the coordinator stands. Empty: at the first site named."},
            &network.coordinator_site);
  Part(v, "coordinator_link", "Access link of the coordinator.", network.coordinator_link,
       NetworkSection{}.coordinator_link);
  Part(v, "exchange", "How the parameters travel between the nodes.", network.exchange);
  Many(
      v, "background",
      "TCP transfers of others, between hosts of their own at two sites: they share the paths, and "
      "the links of sites, with the run's.",
      network.background);
  Part(v, "tcp", "How transport connections behave.", network.tcp);
}

}  // namespace spes::scenarios
