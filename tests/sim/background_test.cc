#include "sim/background.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "tests/sim/levels.h"

namespace spes::sim {
namespace {

using namespace std::chrono_literals;

class BackgroundTest : public testing::TestWithParam<Level> {
 protected:
  // Hosts 0 and 1 at one site, 2 and 3 at another, with a path of 20 Mbps and 20 ms between them.
  static Topology TwoSites() {
    Topology topology = Star(4, {.down_bps = 1e9, .up_bps = 1e9, .rtt = 1ms});
    topology.sites = {"east", "west"};
    topology.hosts[2].site = topology.hosts[3].site = 1;
    const SitePath local{}, wide{.rtt = 18ms, .bps = 20e6};
    topology.paths = {{local, wide}, {wide, local}};
    return topology;
  }

  static std::unique_ptr<Network> Make(const std::vector<BackgroundFlow>& flows,
                                       std::uint64_t seed = 1) {
    auto network = MakeBackground(GetParam().make(TwoSites(), {}), flows, seed);
    network->Prepare(0, 2, 1);
    return network;
  }

  static void Pass(Network& network, Time until) {
    while (network.Now() < until) network.AdvanceTo(until);
  }
};

constexpr BackgroundFlow kEndless{.from = 1, .to = 3};

TEST_P(BackgroundTest, AnEndlessFlowTakesHalfOfASharedLink) {
  // Long: one that begins beside another takes a while to get its share.
  const Flow flow{.from = 0, .to = 2, .bytes = 40'000'000};
  const double alone = ToSeconds(Transfer(*Make({}), flow).end);
  const auto network = Make({kEndless});
  Pass(*network, 5s);
  const FlowResult result = Transfer(*network, flow);
  EXPECT_EQ(result.start, 5s);
  EXPECT_NEAR(ToSeconds(result.end - result.start) / alone, 2, GetParam().packets ? 0.8 : 0.02);
}

TEST_P(BackgroundTest, TwoStreamsTakeTwoThirds) {
  const auto network = Make({{.from = 1, .to = 3, .streams = 2}});
  Pass(*network, 5s);
  const FlowResult result = Transfer(*network, {.from = 0, .to = 2, .bytes = 10'000'000});
  EXPECT_NEAR(ToSeconds(result.end - result.start), 12, GetParam().packets ? 6 : 0.1);
}

TEST_P(BackgroundTest, TheOtherDirectionIsFree) {
  const auto network = Make({{.from = 3, .to = 1}});
  const FlowResult result = Transfer(*network, {.from = 0, .to = 2, .bytes = 10'000'000});
  // Packets: the acknowledgements wait in a full queue.
  EXPECT_NEAR(ToSeconds(result.end), 4.01, GetParam().packets ? 3 : 0.01);
}

// 5 MB take 2 s, and a pause 2 s on average: 60 s carry about 15 of them.
TEST_P(BackgroundTest, TransfersComeAgainAfterPauses) {
  const auto network = Make({{.from = 1, .to = 3, .bytes = 5'000'000, .mean_pause = 2s}});
  Pass(*network, 60s);
  std::int64_t bytes = 0;
  const std::vector<LinkUsage> usage = network->Usage();
  ASSERT_EQ(network->graph().links()[1].name, "host1 up");
  bytes = usage[1].wire_bytes;
  EXPECT_GT(bytes, 5 * 5'000'000);
  EXPECT_LT(bytes, 25 * 5'000'000);
  EXPECT_FALSE(network->NextEvent()) << "it is nothing to wait for";
}

TEST_P(BackgroundTest, NothingHangsWhenOnlyTheBackgroundIsLeft) {
  const auto network = Make({kEndless, {.from = 3, .to = 1, .bytes = 100'000, .mean_pause = 0ns}});
  EXPECT_FALSE(network->NextEvent());
  EXPECT_EQ(network->AdvanceTo(kNever), 0s);
  int calls = 0;
  network->Start({.from = 0, .to = 2, .bytes = 1000}, [&](const FlowResult&) { ++calls; });
  while (network->NextEvent()) network->AdvanceTo(kNever);
  EXPECT_EQ(calls, 1);
  const Time end = network->Now();
  EXPECT_LT(end, 2s);
  EXPECT_EQ(network->AdvanceTo(kNever), end);
  EXPECT_THROW(network->AdvanceTo(0s), std::logic_error);
}

// Only flows of the run are told of, and only they can be cancelled.
TEST_P(BackgroundTest, IsNotHeardOf) {
  const auto network = Make({kEndless, {.from = 3, .to = 1, .bytes = 1000, .mean_pause = 50ms}});
  Pass(*network, 1s);
  std::map<FlowId, FlowOutcome> outcomes;
  const auto note = [&](const FlowResult& r) { outcomes[r.id] = r.outcome; };
  const FlowId done = network->Start({.from = 0, .to = 2, .bytes = 1'000'000}, note);
  const FlowId cancelled = network->Start({.from = 0, .to = 2, .bytes = 100'000'000}, note);
  ASSERT_NE(done, cancelled);
  for (FlowId id = 0; id < 100; ++id) {
    if (id != done) network->Cancel(id);
  }
  while (network->NextEvent()) network->AdvanceTo(kNever);
  EXPECT_EQ(outcomes, (std::map<FlowId, FlowOutcome>{{done, FlowOutcome::kDone},
                                                     {cancelled, FlowOutcome::kCancelled}}));
  // The endless one went on.
  const FlowResult later = Transfer(*network, {.from = 0, .to = 2, .bytes = 5'000'000});
  EXPECT_GT(ToSeconds(later.end - later.start), GetParam().packets ? 2.7 : 3.6);
}

TEST_P(BackgroundTest, TheSeedDecides) {
  const auto end = [](std::uint64_t seed) {
    const auto network = Make({{.from = 1, .to = 3, .bytes = 300'000, .mean_pause = 200ms},
                               {.from = 1, .to = 3, .bytes = 300'000, .mean_pause = 200ms}},
                              seed);
    return Transfer(*network, {.from = 0, .to = 2, .bytes = 5'000'000}).end;
  };
  EXPECT_EQ(end(1), end(1));
  EXPECT_NE(end(1), end(2));
  EXPECT_NE(end(1), end(1 + (std::uint64_t{1} << 32)));
}

TEST_P(BackgroundTest, EachHasPausesOfItsOwn) {
  const auto network = Make({{.from = 1, .to = 3, .bytes = 10'000, .mean_pause = 1s},
                             {.from = 3, .to = 1, .bytes = 10'000, .mean_pause = 1s}});
  int differences = 0;
  for (Time t = 100ms; t < 5s; t += 100ms) {
    Pass(*network, t);
    const std::vector<LinkUsage> usage = network->Usage();
    differences += usage[1].wire_bytes != usage[3].wire_bytes;  // what the two have sent
  }
  EXPECT_GT(differences, 5);
}

TEST_P(BackgroundTest, AdvancesExactly) {
  const auto network = Make({{.from = 1, .to = 3, .bytes = 10'000, .mean_pause = 10ms}});
  for (Time t = 7ms; t < 500ms; t += 7ms) {
    while (network->Now() < t) {
      const Time reached = network->AdvanceTo(t);
      EXPECT_LE(reached, t);
      EXPECT_EQ(reached, network->Now());
    }
  }
  std::optional<Time> end;
  network->Start({.from = 0, .to = 2, .bytes = 50'000}, [&](const FlowResult& r) { end = r.end; });
  while (!end) network->AdvanceTo(1h);
  EXPECT_EQ(network->Now(), *end) << "it stops where a flow of the run ends";
}

TEST_P(BackgroundTest, AnExceptionFromDoneLosesNothing) {
  const auto network = Make({kEndless});
  int later = 0;
  network->Start({.from = 0, .to = 2, .bytes = 1000},
                 [](const FlowResult&) { throw std::runtime_error("from done"); });
  network->Start({.from = 0, .to = 2, .bytes = 100'000}, [&](const FlowResult&) { ++later; });
  const auto drain = [&] {
    while (network->NextEvent()) network->AdvanceTo(kNever);
  };
  EXPECT_THROW(drain(), std::runtime_error);
  drain();
  EXPECT_EQ(later, 1);
}

TEST_P(BackgroundTest, RefusesWhatCannotBe) {
  EXPECT_THROW(Make({{.from = 1, .to = 1}}), std::invalid_argument);
  EXPECT_THROW(Make({{.from = 1, .to = 9}}), std::invalid_argument);
  EXPECT_THROW(Make({{.from = 1, .to = 3, .streams = 0}}), std::invalid_argument);
  EXPECT_THROW(Make({{.from = 1, .to = 3, .bytes = -1}}), std::invalid_argument);
  EXPECT_THROW(Make({{.from = 1, .to = 3, .mean_pause = -1s}}), std::invalid_argument);
}

// Every flow fails as soon as it begins.
class Broken : public Network {
 public:
  Broken() : graph_(Star(2, {}), {}) {}
  Time Now() const override { return now_; }
  void Prepare(int, int, int) override {}
  FlowId Start(const Flow& flow, OnDone done) override {
    failed_.emplace_back(flow, std::move(done));
    return ++starts_;
  }
  void Cancel(FlowId) override {}
  std::optional<Time> NextEvent() const override { return std::nullopt; }
  Time AdvanceTo(Time t) override {
    if (failed_.empty()) return now_ = t;
    const auto [flow, done] = std::move(failed_.back());
    failed_.pop_back();
    FlowResult result;
    result.flow = flow;
    result.start = result.end = now_;
    result.outcome = FlowOutcome::kFailed;
    done(result);
    return now_;
  }
  const LinkGraph& graph() const override { return graph_; }
  std::vector<LinkUsage> Usage() const override { return {}; }
  FlowId starts() const { return starts_; }

 private:
  LinkGraph graph_;
  Time now_{0};
  FlowId starts_ = 0;
  std::vector<std::pair<Flow, OnDone>> failed_;
};

TEST(Background, WhatFailsIsNotTriedWithoutEnd) {
  auto broken = std::make_unique<Broken>();
  const Broken& starts = *broken;
  const auto network = MakeBackground(std::move(broken), {{.from = 0, .to = 1}}, 1);
  while (network->Now() < 10s) {
    network->AdvanceTo(10s);
    ASSERT_LE(starts.starts(), 10u);
  }
  EXPECT_EQ(starts.starts(), 10u);
}

INSTANTIATE_TEST_SUITE_P(Levels, BackgroundTest, testing::ValuesIn(Levels()), LevelName);

}  // namespace
}  // namespace spes::sim
