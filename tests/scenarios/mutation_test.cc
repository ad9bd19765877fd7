// Broken scenario files give a scenario or one clear line, never anything else.

#include <algorithm>
#include <random>

#include "scenarios/printer.h"
#include "tests/scenarios/scenario_testing.h"

namespace spes::scenarios {
namespace {

// In block style, so that many mutants are still YAML.
const std::string kText = R"(name: mutant
seed: 3
model:
  layers: 2
  experts: 4
  width: 32
  heads: 2
  kv_heads: 1
data:
  domains:
    - gcide
    - name: toy
      synthetic: true
      synthetic_tokens: 1000
  held_out: 0.1
training:
  steps: 20
  sequences: 4
  micro_sequences: 2
  context: 16
  lr: 1e-3
nodes:
  groups:
    - &g
      count: 1
      site: a
      link: {down: 10 Mbps, rtt: 4 ms}
    - count: 3
      speed: 0.5
  compute:
    kind: flops
    efficiency: 0.5
sync:
  every: 5
  merge:
    interval: 5
    length: 10
  deadline: 3 min
  quorum: 2
network:
  paths:
    - a: a
      b: b
      rtt: 80 ms
      rate: 1 Gbps
      rate_back: 300 Mbps
      loss: 1e-4
      conditions:
        diurnal: {depth: 0.3}
        outages:
          - {at: 1 min, duration: 5 s, every: 1 h}
        cross_traffic: [{rate: 10 Mbps, on: 1 s, off: 2 s}]
  sites:
    - name: a
      link: {up: 30 Mbps}
  coordinator_site: b
  background:
    - from: a
      to: b
      size: 1 MB
  tcp:
    streams: 4
    congestion: reno
faults:
  scripted:
    - {at: 1 s, kind: crash, node: coordinator, duration: 5 s}
  random:
    - kind: slow
      nodes: 0,2-3
      mean_between: 1 min
      mean_duration: 5 s
      factor: 3
  detection: 2 s
)";

const char* const kPieces[] = {"\n",
                               " ",
                               ":",
                               "- ",
                               "{",
                               "}",
                               "[",
                               "]",
                               "'",
                               "\"",
                               "#",
                               "&g ",
                               "*g",
                               "~",
                               "-1",
                               "0",
                               "1e308",
                               "nan",
                               ".inf",
                               "99999999999999999999",
                               "true",
                               "<<: *g",
                               "\t",
                               "\xff",
                               "\xc3",
                               "!!binary x",
                               "---\n",
                               "...\n",
                               "|\n",
                               ">",
                               "%YAML",
                               "? ",
                               "\\",
                               "x.yaml",
                               "base: s.yaml",
                               "1e5 Gbps",
                               "null",
                               ",",
                               "count: 2147483647",
                               "layers: 99999999",
                               "\r"};

std::string Mutant(std::mt19937& random) {
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  std::string text = kText;
  const std::size_t edits = 1 + below(3);
  for (std::size_t i = 0; i < edits && !text.empty(); ++i) {
    const std::size_t at = below(text.size());
    switch (below(8)) {
      case 0:
        text.erase(at, 1 + below(8));
        break;
      case 1:
        text.insert(at, kPieces[below(std::size(kPieces))]);
        break;
      case 2:
        text[at] = static_cast<char>(random() % 256);
        break;
      case 3: {  // a piece of the text somewhere else
        const std::string piece = text.substr(at, 1 + below(30));
        text.insert(below(text.size()), piece);
        break;
      }
      case 4: {  // a line less
        const std::size_t begin = text.rfind('\n', at) + 1;
        text.erase(begin, text.find('\n', at) - begin + 1);
        break;
      }
      case 5:
        text.resize(at);
        break;
      default: {  // another value
        const std::size_t colon = text.find(": ", at);
        if (colon == std::string::npos) break;
        const std::size_t end = std::min(text.find_first_of(",}\n", colon + 2), text.size());
        text.replace(colon + 2, end - colon - 2, kPieces[below(std::size(kPieces))]);
      }
    }
  }
  return text;
}

TEST(Mutation, EveryTextIsAScenarioOrOneLine) {
  ASSERT_EQ(ParseError(kText), "no error");
  std::mt19937 random(20240501);
  int good = 0;
  for (int i = 0; i < 3000; ++i) {
    const std::string text = Mutant(random);
    try {
      const Scenario scenario = Parse(text);
      // What is accepted can be printed and read.
      const std::string printed = PrintScenario(scenario);
      ASSERT_EQ(PrintScenario(ParseScenario(printed, "p.yaml")), printed) << text;
      ++good;
    } catch (const std::invalid_argument& e) {
      const std::string line = e.what();

      EXPECT_TRUE(line.starts_with("s.yaml")) << line << "\n" << text;
      EXPECT_EQ(line.find_first_of("\n\r\t"), std::string::npos) << line << "\n" << text;
      EXPECT_LT(line.size(), 400u) << line;
    } catch (const std::exception& e) {
      ADD_FAILURE() << e.what() << "\n" << text;
    }
  }
  // Both ends are well visited.
  EXPECT_GT(good, 100);
  EXPECT_LT(good, 2900);
}

TEST(Mutation, EveryOverrideIsAppliedOrOneLine) {
  std::mt19937 random(7);
  for (int i = 0; i < 1000; ++i) {
    std::string override = "nodes.groups.0.link={down: 5 Mbps}";
    for (int k = 0; k < 2; ++k) {
      override.insert(random() % override.size(), kPieces[random() % std::size(kPieces)]);
    }
    const std::string error = ParseError(kText, {override});
    if (error == "no error") continue;
    EXPECT_TRUE(error.starts_with("--set ") || error.starts_with("s.yaml")) << error;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  }
}

}  // namespace
}  // namespace spes::scenarios
