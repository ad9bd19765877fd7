#include "scenarios/printer.h"

#include <fmt/format.h>

#include <functional>
#include <map>
#include <set>

#include "scenarios/describe.h"
#include "scenarios/origins.h"
#include "tests/scenarios/scenario_testing.h"

namespace spes::scenarios {
namespace {

// Calls a function on every value of a scenario, with its path.
class EachValue : public Visitor {
 public:
  using OnEach = std::function<void(const std::string&, const Field&, const Value&)>;
  explicit EachValue(OnEach f, std::string path = {}) : f_(std::move(f)), path_(std::move(path)) {}

  void OnValue(const Field& field, const Value& value) override {
    f_(Join(path_, field.key), field, value);
  }
  void OnSection(const Field& field, const Section& section) override {
    EachValue inner(f_, Join(path_, field.key));
    section.visit(inner);
  }
  void OnList(const Field& field, const List& list) override {
    for (std::size_t i = 0; i < list.size(); ++i) {
      EachValue inner(f_, Join(Join(path_, field.key), std::to_string(i)));
      list.visit(i, inner);
    }
  }

 private:
  OnEach f_;
  std::string path_;
};

// Path → the value, exactly.
std::map<std::string, std::string> Values(Scenario scenario) {
  std::map<std::string, std::string> values;
  EachValue visitor([&](const std::string& path, const Field&, const Value& value) {
    std::string& text = values[path];
    std::visit(
        [&](const auto& v) {
          using T = std::decay_t<decltype(v)>;
          if constexpr (std::is_same_v<T, Choice>) {
            text = std::to_string(v.get());
          } else if constexpr (std::is_same_v<T, std::vector<std::string>*>) {
            for (const std::string& s : *v) text += s + "\n";
          } else if constexpr (std::is_same_v<T, std::string*>) {
            text = *v;
          } else if constexpr (std::is_same_v<T, sim::Time*>) {
            text = std::to_string(v->count());
          } else if constexpr (std::is_same_v<T, std::optional<double>*>) {
            text = *v ? fmt::format("{:a}", **v) : "none";
          } else if constexpr (std::is_same_v<T, std::optional<sim::Time>*>) {
            text = *v ? std::to_string((*v)->count()) : "none";
          } else if constexpr (std::is_same_v<T, double*>) {
            text = fmt::format("{:a}", *v);
          } else {
            text = std::to_string(*v);
          }
        },
        value);
  });
  Describe(scenario, visitor);
  return values;
}

void ExpectRoundTrip(const Scenario& scenario) {
  const std::string text = PrintScenario(scenario);
  const Scenario again = ParseScenario(text, "elsewhere/other.yaml");
  EXPECT_EQ(Values(again), Values(scenario)) << text;
  EXPECT_EQ(PrintScenario(again), text);
}

TEST(Printer, DefaultsReadBack) { ExpectRoundTrip(Parse(kSmall)); }

TEST(Printer, ShowsUnitsAndWholeSections) {
  const std::string text =
      PrintScenario(Parse(kSmall, {"sync.deadline=90 s", "network.coordinator_link.up=26.6 Mbps"}));
  EXPECT_NE(text.find("kind: fixed, step_time: 500 ms, "), std::string::npos) << text;
  EXPECT_NE(text.find("\n  deadline: 90 s\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\n  merge: {interval: 0, alpha: 0.05, length: 0, donors: 4, similarity: w1, "
                      "decay: linear, mode: experts}\n"),
            std::string::npos)
      << text;
  EXPECT_NE(
      text.find("{down: 10 Gbps, up: 26.6 Mbps, rtt: 0 s, loss: 0, loss_burst: 1, queue_bdp: 1, "
                "down_trace: \"\", up_trace: \"\", conditions: {}}"),
      std::string::npos)
      << text;
}

TEST(Printer, EachConditionAloneReadsBack) {
  for (const char* conditions : {"diurnal: {depth: 0.5}", "outages: [{duration: 1 s}]",
                                 "rtt_steps: [{extra: 1 s}]", "cross_traffic: [{rate: 1 Mbps}]"}) {
    const Scenario s =
        Parse(kSmall, {"network.coordinator_link.conditions={" + std::string(conditions) + "}"});
    EXPECT_NE(PrintScenario(s), PrintScenario(Parse(kSmall))) << conditions;
    ExpectRoundTrip(s);
  }
}

// As much as goes together.
void ChangeSync(SyncSection& sync) {
  sync.schedule = {.every = 5, .experts_every = 10, .growth = 3, .overlap = 2};
  sync.keep_own = 1.0 / 3;
  sync.allocation = trainer::AllocationKind::kRoundRobin;
  sync.shared.rule = {trainer::ReductionKind::kTrimmedMean, 0.1};
  sync.shared.outer = {.nesterov = true, .lr = 0.3, .momentum = 0.5};
  sync.experts.rule.kind = trainer::ReductionKind::kMedian;
  sync.experts.outer = {.nesterov = true, .lr = 0.9, .momentum = 0.1};
  sync.rotate.moments = trainer::RotatedMoments::kKept;
  sync.moments = trainer::MomentsRule::kReset;
  sync.merge = {.interval = 20,
                .alpha = 0.2,
                .length = 77,
                .donors = 2,
                .similarity = trainer::MergeSimilarity::kRouter,
                .decay = trainer::MergeDecay::kCosine,
                .mode = trainer::MergeMode::kAligned};
  sync.up = {.kind = trainer::CodecKind::kInt4,
             .differences = true,
             .error_feedback = true,
             .group = 32,
             .skip_unchanged = true,
             .zstd = 3};
  sync.down = {.kind = trainer::CodecKind::kTopK, .keep = 0.25};
  sync.deadline = sim::Time(12'345'678'901);
  sync.trust = {.norm_bound = 3.3, .window = 5, .strikes = 2, .held_out = 321, .margin = 0.07};
}

TEST(Printer, FaultsReadBack) {
  ExpectRoundTrip(Parse(kSmall +
                        "faults:\n"
                        "  scripted: [{at: 1 s, kind: slow, node: 0, duration: 2 s, factor: 2.1}]\n"
                        "  random: [{kind: crash, mean_between: 3 min, mean_duration: 7 s}]\n"
                        "  detection: 5 s\n"
                        "  give_up_after: 1 h\n"));
}

// Every value that can be changed by itself, changed; awkward numbers and texts among them.
TEST(Printer, EveryFieldReadsBack) {
  const TempFolder folder;
  const std::string file = folder.Write("a file: #1.txt", "5\n");
  Scenario s = Parse(
      "model: {experts: 4}\n"
      "nodes: {groups: [{count: 2, site: a}, {site: 'b: \"c\"', count: 2}]}\n"
      "network:\n"
      "  paths: [{a: a, b: 'b: \"c\"', conditions: {outages: [{duration: 1 s, every: 5 s}], "
      "rtt_steps: [{}], cross_traffic: [{rate: 1 Mbps, on: 1 s, off: 1 s}]}}]\n"
      "  sites: [{name: a}]\n"
      "  background: [{from: a, to: a}]\n"
      "data: {domains: [{name: toy, synthetic: true, synthetic_tokens: 1000}]}\n");
  trainer::DomainConfig text, tokens;
  text.name = "text";
  text.files = {file, file};
  text.limit_bytes = 123'457;
  tokens.name = "tokens";
  tokens.tokens = {file};
  tokens.token_type = trainer::TokenType::kUint32;
  s.data.domains.push_back(text);
  s.data.domains.push_back(tokens);

  const std::map<std::string, std::string> before = Values(s);
  const std::set<std::string> kept = {"nodes.count",
                                      "network.matrix",
                                      "network.latency_matrix",
                                      "network.rate_matrix",
                                      "network.path_rate",
                                      "network.path_loss",
                                      "network.path_loss_burst",
                                      "network.path_queue_bdp",
                                      "network.exchange.pattern",  // see exchange_test.cc
                                      "network.exchange.coordinators",
                                      "network.exchange.sends",
                                      "model.experts",
                                      "model.heads",
                                      "model.kv_heads",
                                      "model.width",
                                      "model.head_width",
                                      "training.sequences",
                                      "training.micro_sequences"};
  int number = 0;
  EachValue change([&](const std::string& path, const Field& field, const Value& value) {
    ++number;
    if (kept.contains(path) || path.starts_with("data.domains") || path.starts_with("sync.") ||
        path.starts_with("faults.") ||  // are for simulations
        path.starts_with("training.routing_bias") || path.ends_with(".count") ||
        path.ends_with("site") || path.ends_with(".a") || path.ends_with(".b") ||
        path.ends_with(".from") || path.ends_with(".to") || path == "network.sites.0.name") {
      return;
    }
    std::visit(
        [&](const auto& v) {
          using T = std::decay_t<decltype(v)>;
          if constexpr (std::is_same_v<T, Choice>) {
            v.set(v.names.size() - 1 - v.get());
          } else if constexpr (std::is_same_v<T, std::string*>) {
            *v = field.unit == Unit::kInputFile ? file : "x: \"" + std::to_string(number) + "\"";
          } else if constexpr (std::is_same_v<T, sim::Time*>) {
            *v += sim::Time(1'000'003 + number);
          } else if constexpr (std::is_same_v<T, std::optional<double>*>) {
            *v = 1e7 / (3 + number);
          } else if constexpr (std::is_same_v<T, std::optional<sim::Time>*>) {
            *v = sim::Time(12'345'678'901 + number);
          } else if constexpr (std::is_same_v<T, std::vector<std::string>*>) {
            *v = {file};
          } else if constexpr (std::is_same_v<T, bool*>) {
            *v = !*v;
          } else if constexpr (std::is_same_v<T, double*>) {
            *v = field.limits.max <= 1 ? 1.0 / (3 + number) : *v * 1.1 + 1.0 / 3;
          } else {
            *v += 1;
          }
        },
        value);
  });
  Describe(s, change);
  s.data.tokenizer = trainer::TokenizerKind::kSentencePiece;
  ChangeSync(s.sync);
  for (NodeGroup& group : s.nodes.groups) {
    group.poison = {.kind = trainer::PoisonKind::kSignFlip, .factor = 2.1, .after = 3};
  }
  s.devices = {"cpu", "cpu"};
  s.training.micro_sequences = 1;
  s.model.dtype = trainer::DType::kFloat32;
  s.transport.tls = TlsUse::kAuto;
  s.nodes.only_wait = false;
  s.training.optimizer.decay_steps = s.training.optimizer.warmup_steps + 7;

  // The test must change nearly everything to be worth something.
  int same = 0;
  for (const auto& [path, value] : Values(s)) same += before.at(path) == value;
  EXPECT_LT(same, 78);
  EXPECT_GT(before.size(), 170u);
  ExpectRoundTrip(s);
}

TEST(Printer, CorporaKeepTheirNames) {
  Scenario s = Parse("nodes: {count: 1}\ndata: {domains: [gcide]}\n");
  ASSERT_EQ(s.data.domains[0].name, "gcide");
  ASSERT_EQ(s.data.domains[0].corpus, "gcide");
  const std::string text = PrintScenario(s);
  s.data.domains[0].files = {"/somewhere/gcide.dict.dz"};  // as ResolveCorpora does
  EXPECT_EQ(PrintScenario(s), text);
}

TEST(Printer, PrintsOneValueByItsKey) {
  const Scenario s = Parse(With("nodes", "{count: 2, groups: [{link: {up: 5 Mbps}}, {}]}"));
  EXPECT_EQ(PrintValue(s, "sync.every"), "5");
  EXPECT_EQ(PrintValue(s, "nodes.groups.0.link.up"), "5 Mbps");
  EXPECT_EQ(PrintValue(s, "data.domains.0.name"), "toy");
  EXPECT_EQ(PrintValue(s, "data.domains.0.files"), "");
  for (const char* key : {"sync", "nodes.groups", "nodes.groups.2.speed", "sync.absent", "absent",
                          "sync.every.more", "nodes.groups.x"}) {
    EXPECT_EQ(PrintValue(s, key), "") << key;
  }
}

}  // namespace
}  // namespace spes::scenarios
