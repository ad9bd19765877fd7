#include "scenarios/capacity_trace.h"

#include "tests/scenarios/scenario_testing.h"

namespace spes::scenarios {
namespace {

using std::chrono::milliseconds;

std::shared_ptr<const sim::RateTrace> Read(const std::string& text,
                                           sim::Time interval = milliseconds(100)) {
  const TempFolder folder;
  return ReadCapacityTrace(folder.Write("t.trace", text), interval);
}

// "at in ms: Mbit/s" of each step.
std::string Steps(const sim::RateTrace& trace) {
  std::string text;
  for (const auto& [at, bps] : trace.steps) {
    text += (text.empty() ? "" : ", ") + std::to_string(at / milliseconds(1)) + ": " +
            std::to_string(bps / 1e6).substr(0, 5);
  }
  return text;
}

// Bits that pass in one period.
double Bits(const sim::RateTrace& trace) {
  double bits = 0;
  for (std::size_t i = 0; i < trace.steps.size(); ++i) {
    const sim::Time end = i + 1 < trace.steps.size() ? trace.steps[i + 1].at : trace.period;
    bits += trace.steps[i].bps * sim::ToSeconds(end - trace.steps[i].at);
  }
  return bits;
}

// The example of Mahimahi's manual: a packet in each millisecond is 12 Mbit/s.
TEST(CapacityTrace, OneLineIsAConstantRate) {
  const auto trace = Read("1\n");
  EXPECT_EQ(trace->period, milliseconds(1));
  EXPECT_EQ(Steps(*trace), "0: 12.00");
}

TEST(CapacityTrace, AveragesOverTheInterval) {
  std::string text;
  for (int ms = 1; ms <= 200; ++ms) text += std::to_string(ms) + "\n";       // 12 Mbit/s
  for (int i = 0; i < 50; ++i) text += "300\n";                              // 50 in 100 ms: 6
  for (int ms = 502; ms <= 600; ms += 2) text += std::to_string(ms) + "\n";  // none, then 6
  const auto trace = Read(text);
  EXPECT_EQ(Steps(*trace), "0: 12.00, 200: 6.000, 300: 0.000, 500: 6.000");
  EXPECT_EQ(trace->period, milliseconds(600));
  EXPECT_EQ(Steps(*Read(text, milliseconds(200))), "0: 12.00, 200: 3.000");
  EXPECT_EQ(Steps(*Read(text, milliseconds(1000))), "0: 6.000") << "300 packets in 600 ms";
}

TEST(CapacityTrace, NoPacketIsLostToTheIntervals) {
  std::string text = "0\n0\n";
  int packets = 2;
  for (int ms = 3; ms <= 1017; ms += 1 + ms * 7 % 13) {
    for (int i = 0; i <= ms % 3; ++i, ++packets) text += std::to_string(ms) + "\n";
  }
  for (const int interval : {1, 7, 100, 333, 5000}) {
    const auto trace = Read(text, milliseconds(interval));
    EXPECT_NEAR(Bits(*trace), packets * 12000.0, 1e-3) << interval;
    EXPECT_NO_THROW(sim::Validate(*trace, "it")) << interval;
  }
}

TEST(CapacityTrace, LineEndsAndMarksAreNoMatter) {
  EXPECT_EQ(Steps(*Read("\xef\xbb\xbf"
                        "1\r\n2\r\n2")),
            "0: 18.00");
}

TEST(CapacityTrace, RefusesJunk) {
  const TempFolder folder;
  const auto error = [&](const std::string& text) {
    const std::string file = folder.Write("t.trace", text);
    const std::string message = ErrorOf([&] { ReadCapacityTrace(file, milliseconds(100)); });
    return message.starts_with(file) ? message.substr(file.size()) : message;
  };
  EXPECT_EQ(error(""), ": is empty; a trace has a time in ms in each line");
  EXPECT_EQ(error("1\ntwo\n"),
            ":2: 'two' is not a time in whole milliseconds from 0 to 10000000000");
  EXPECT_EQ(error("1\n\n2\n"), ":2: '' is not a time in whole milliseconds from 0 to 10000000000");
  EXPECT_EQ(error("1.5\n"), ":1: '1.5' is not a time in whole milliseconds from 0 to 10000000000");
  EXPECT_EQ(error("-1\n"), ":1: '-1' is not a time in whole milliseconds from 0 to 10000000000");
  EXPECT_EQ(error("10000000001\n"),
            ":1: '10000000001' is not a time in whole milliseconds from 0 to 10000000000");
  EXPECT_EQ(error("5\n7\n6\n"), ":3: 6 ms comes after 7 ms: times must not decrease");
  EXPECT_EQ(error("0\n0\n"), ":2: the trace takes no time: its last line must be above 0");
  EXPECT_EQ(ErrorOf([&] { ReadCapacityTrace(folder.Path("none"), milliseconds(1)); }),
            folder.Path("none") + ": cannot be read: No such file or directory");
}

}  // namespace
}  // namespace spes::scenarios
