#include "trainer/runtime/link_sampler.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <map>
#include <vector>

#include "sim/event_loop.h"
#include "tests/sim/levels.h"
#include "tests/trainer/protocol/memory_recorder.h"

namespace spes::trainer {
namespace {

using namespace std::chrono_literals;
using sim::Time;
using Rows = std::vector<analysis::LinkRecord>;

// Links 0 to 2 are the hosts' up, 3 to 5 their down.
sim::Topology Three() { return sim::Star(3, {.down_bps = 20e6, .up_bps = 20e6, .rtt = 40ms}); }

struct Sampled {
  Sampled(const sim::Level& level, const sim::Topology& topology, std::optional<Time> every)
      : network(level.make(topology, {}), recorder, every), loop(&network) {
    sim::PrepareAll(network, topology);
  }
  void Start(int from, int to, std::int64_t bytes) {
    network.Start({.from = from, .to = to, .bytes = bytes},
                  [this](const sim::FlowResult& r) { results.push_back(r); });
  }
  // Two flows that meet, silence, and another one.
  void RunScript() {
    Start(0, 1, 20'000'000);
    loop.At(300ms, [this] { Start(2, 1, 10'000'000); });
    loop.At(20'250ms, [this] { Start(1, 0, 1'500'000); });
    loop.Run();
  }
  Rows Of(int link) const {
    Rows rows;
    for (const auto& row : recorder.links) {
      if (row.link == link) rows.push_back(row);
    }
    return rows;
  }

  MemoryRecorder recorder;
  LinkSampler network;
  sim::EventLoop loop;
  std::vector<sim::FlowResult> results;
};

class LinkSamplerTest : public testing::TestWithParam<sim::Level> {};

TEST_P(LinkSamplerTest, RowsAddUpToTheUsage) {
  Sampled s(GetParam(), Three(), 100ms);
  s.loop.At(777ms, [&] { s.network.Sample(); });
  s.RunScript();
  s.network.Sample();
  const std::vector<sim::LinkUsage> usage = s.network.Usage();
  for (int link = 0; link < static_cast<int>(usage.size()); ++link) {
    std::int64_t wire = 0, drops = 0;
    double until = 0;
    for (const auto& row : s.Of(link)) {
      EXPECT_GE(row.start_s, until);
      EXPECT_GT(row.end_s, row.start_s);
      EXPECT_GT(row.wire_bytes + row.dropped_packets, 0);
      EXPECT_EQ(row.name, s.network.graph().links()[link].name);
      until = row.end_s;
      wire += row.wire_bytes;
      drops += row.dropped_packets;
    }
    EXPECT_EQ(wire, usage[link].wire_bytes) << link;
    EXPECT_EQ(drops, usage[link].dropped_packets) << link;
  }
}

TEST_P(LinkSamplerTest, ASaturatedLinkIsFullyUsed) {
  Sampled s(GetParam(), Three(), 1s);
  s.Start(0, 1, 30'000'000);
  s.loop.Run();
  ASSERT_EQ(s.results.size(), 1u);
  int full = 0;
  for (const auto& row : s.Of(0)) {
    EXPECT_DOUBLE_EQ(row.utilisation,
                     static_cast<double>(row.wire_bytes) / static_cast<double>(row.capacity_bytes));
    EXPECT_LE(row.utilisation, 1.002) << row.start_s;
    if (row.start_s < 2 || row.end_s > 12) continue;
    EXPECT_NEAR(row.utilisation, 1, 0.02) << row.start_s;
    ++full;
  }
  EXPECT_EQ(full, 10);
  for (const int silent : {2, 5}) EXPECT_TRUE(s.Of(silent).empty());
}

TEST_P(LinkSamplerTest, ChangesNoTimesAndNoBytes) {
  std::vector<sim::FlowResult> results[2];
  std::vector<sim::LinkUsage> usage[2];
  for (const bool sampled : {false, true}) {  // at the packet level one network at a time
    Sampled s(GetParam(), Three(), sampled ? std::optional<Time>(3ms) : std::nullopt);
    s.RunScript();
    results[sampled] = s.results;
    usage[sampled] = s.network.Usage();
  }
  ASSERT_EQ(results[0].size(), 3u);
  ASSERT_EQ(results[1].size(), 3u);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(results[0][i].end, results[1][i].end);
    EXPECT_EQ(results[0][i].wire_bytes, results[1][i].wire_bytes);
    EXPECT_EQ(results[0][i].rtt_mean, results[1][i].rtt_mean);
  }
  for (std::size_t link = 0; link < usage[0].size(); ++link) {
    EXPECT_EQ(usage[0][link].wire_bytes, usage[1][link].wire_bytes);
  }
}

// Nothing waits for a sample, and nothing is sampled in silence.
TEST_P(LinkSamplerTest, LeavesTheLoopNothingToDo) {
  Sampled s(GetParam(), Three(), 1ms);
  s.loop.At(1000s, [&] { s.Start(1, 0, 1000); });
  s.Start(0, 1, 1000);
  int steps = 0;
  while (s.loop.Step()) ++steps;
  ASSERT_EQ(s.results.size(), 2u);
  EXPECT_EQ(s.loop.Now(), s.results.back().end);
  EXPECT_LT(steps, 300);
}

TEST_P(LinkSamplerTest, RowsBeginAndEndWhereTheyShould) {
  Sampled s(GetParam(), Three(), 1s);
  s.loop.At(30s, [] {});
  s.RunScript();
  const Rows first = s.Of(0);
  ASSERT_FALSE(first.empty());
  EXPECT_EQ(first[0].start_s, 0);
  int again = 0;
  for (const auto& row : s.recorder.links) {
    again += row.start_s == 20.25 && row.link == 1;
    EXPECT_TRUE(row.start_s == 20.25 || row.start_s == std::floor(row.start_s)) << row.start_s;
    EXPECT_EQ(row.end_s, std::floor(row.start_s) + 1);
    if (row.link >= 6) continue;  // between the hosts, wide
    EXPECT_EQ(row.capacity_bytes, std::llround((row.end_s - row.start_s) * 2'500'000));
  }
  EXPECT_EQ(again, 1);
}

TEST_P(LinkSamplerTest, WithoutAnIntervalItSamplesWhenAsked) {
  Sampled s(GetParam(), Three(), std::nullopt);
  s.loop.At(2s, [&] { EXPECT_TRUE(s.network.Sample()); });
  s.loop.At(15s, [&] {
    EXPECT_TRUE(s.network.Sample());
    EXPECT_FALSE(s.network.Sample());
  });
  s.loop.At(18s, [&] { EXPECT_FALSE(s.network.Sample()); });
  s.RunScript();
  const Rows there = s.Of(0);
  ASSERT_GE(there.size(), 1u);
  EXPECT_EQ(there[0].start_s, 0);
  EXPECT_EQ(there[0].end_s, 2);
  for (const auto& row : s.recorder.links) EXPECT_LE(row.end_s, 15);
}

INSTANTIATE_TEST_SUITE_P(Levels, LinkSamplerTest, testing::ValuesIn(sim::Levels()), sim::LevelName);

TEST(LinkSampler, CapacityIsThatOfTheTime) {
  sim::Topology topology = Three();
  topology.hosts[0].link.conditions.outages = {{.at = 1s, .duration = 500ms, .every = 0s}};
  Sampled s(sim::Levels()[0], topology, 1s);
  s.Start(0, 1, 6'000'000);
  s.loop.Run();
  const Rows rows = s.Of(0);
  ASSERT_GE(rows.size(), 2u);
  EXPECT_EQ(rows[0].capacity_bytes, 2'500'000);
  EXPECT_EQ(rows[1].capacity_bytes, 1'250'000);
  EXPECT_NEAR(rows[1].utilisation, 1, 0.02);
}

}  // namespace
}  // namespace spes::trainer
