#include "sim/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>

#include "tests/sim/two_sites.h"

namespace spes::sim {
namespace {

using namespace std::chrono_literals;

TEST(Topology, EachMistakeIsNamed) {
  EXPECT_NO_THROW(TwoSites().Validate());
  const auto refused = [](const std::function<void(Topology&)>& spoil, const std::string& text) {
    Topology topology = TwoSites();
    spoil(topology);
    try {
      topology.Validate();
      ADD_FAILURE() << "accepted: " << text;
    } catch (const std::invalid_argument& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(text));
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    }
  };
  const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
  refused([](Topology& t) { t.hosts.clear(); }, "no hosts");
  refused([](Topology& t) { t.sites.clear(), t.paths.clear(); }, "no sites");
  refused([](Topology& t) { t.hosts[1].site = 2; }, "host 'b' stands at site 2");
  refused([](Topology& t) { t.hosts[1].site = -1; }, "host 'b' stands at site -1");
  refused([](Topology& t) { t.paths.pop_back(); }, "1 rows for 2 sites");
  refused([](Topology& t) { t.paths[1].pop_back(); }, "row 'west'");
  refused([](Topology& t) { t.paths[1][0]->rtt = 61ms; }, "another round trip than its way back");
  refused([](Topology& t) { t.paths[0][1].reset(); }, "one way only");
  refused([](Topology& t) { t.paths[0][0]->bps = 0; }, "at least 1 bit/s");
  refused([](Topology& t) { t.paths[0][0]->rtt = -1ns; }, "cannot be negative");
  refused([](Topology& t) { t.paths[1][1]->loss = 1; }, "[0, 1)");
  refused([](Topology& t) { t.hosts[0].link.up_bps = -5; }, "the up link of host 'a'");
  refused([](Topology& t) { t.paths[0][1]->bps = 1e-12; }, "at least 1 bit/s");
  refused(
      [](Topology& t) {
        t.paths[0][1]->trace = std::make_shared<const RateTrace>(RateTrace{{{0s, 1e-6}}, 0s});
      },
      "at least 1 bit/s");
  refused([=](Topology& t) { t.hosts[2].link.down_bps = nan; }, "the down link of host 'c'");
  refused([=](Topology& t) { t.hosts[2].link.down_bps = inf; }, "the down link of host 'c'");
  refused([](Topology& t) { t.hosts[0].link.loss = 1.5; }, "host 'a' has a loss of 1.5");
  refused([](Topology& t) { t.hosts[0].link.loss = -0.1; }, "loss");
  refused([=](Topology& t) { t.hosts[0].link.loss = nan; }, "loss");
  refused([](Topology& t) { t.hosts[0].link.rtt = -1ms; }, "host 'a' has a round trip");
  refused([](Topology& t) { t.hosts[0].link.queue_bdp = 0; }, "queue");
  refused([](Topology& t) { t.hosts[0].link.loss_burst = 0.5; }, "bursts of 0.5");
  refused([](Topology& t) { t.paths[0][1]->loss = 0.9, t.paths[0][1]->loss_burst = 2; },
          "cannot lose 0.9");
  refused([](Topology& t) { t.uplinks.resize(1); }, "1 links of sites for 2 sites");
  refused([](Topology& t) { t.uplinks = {AccessLink{.rtt = -1ms}, std::nullopt}; }, "site 'east'");
}

TEST(TcpConfig, EachMistakeIsNamed) {
  const auto refused = [](const TcpConfig& tcp, const std::string& text) {
    try {
      tcp.Validate();
      ADD_FAILURE() << "accepted: " << text;
    } catch (const std::invalid_argument& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(text));
    }
  };
  EXPECT_NO_THROW(TcpConfig{}.Validate());
  EXPECT_NO_THROW(TcpConfig{.congestion = "reno"}.Validate());
  refused({.congestion = "vegas"}, "'vegas'");
  refused({.segment_bytes = 100}, "100 bytes");
  refused({.segment_bytes = 70000}, "70000 bytes");
  refused({.initial_window = 0}, "initial window");
  refused({.coarse_factor = 0}, "[1, 100]");
  refused({.streams = 0}, "streams");
  refused({.stall_timeout = 0s}, "stall");
}

}  // namespace
}  // namespace spes::sim
