// What the subcommand plan predicts, and what a run then takes.
#include <gmock/gmock.h>

#include <map>
#include <sstream>

#include "analysis/hdf5/log_reader.h"
#include "tests/end_to_end/program.h"

namespace spes::end_to_end {
namespace {

using ::testing::HasSubstr;

class PlanTest : public ProgramTest {
 protected:
  PlanTest() { Write("tiny.yaml", TinyScenario()); }

  // The table of `plan --format csv`: [node] column → value.
  std::vector<std::map<std::string, double>> Rows(const std::string& options) const {
    const Outcome outcome = Run("plan tiny.yaml --format csv " + options);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    std::istringstream in(outcome.out);
    const auto cells = [](const std::string& line) {
      std::vector<std::string> all;
      std::istringstream parts(line);
      for (std::string cell; std::getline(parts, cell, ',');) all.push_back(cell);
      return all;
    };
    std::string line;
    std::getline(in, line);
    const std::vector<std::string> names = cells(line);
    std::vector<std::map<std::string, double>> rows;
    while (std::getline(in, line)) {
      const std::vector<std::string> values = cells(line);
      rows.emplace_back();
      for (std::size_t i = 0; i < names.size(); ++i) rows.back()[names[i]] = std::stod(values[i]);
    }
    return rows;
  }
};

TEST_F(PlanTest, PredictsWhatARunTakes) {
  for (const std::string pattern : {"coordinator", "ring", "direct", "tree"}) {
    const std::string options = "--set network.exchange.pattern=" + pattern +
                                " --set training.steps=16 --set sync.merge.interval=0";
    ASSERT_EQ(Run("tiny.yaml --output run.h5 " + options).code, 0);
    const analysis::RunLog log = analysis::ReadRunLog(Path("run.h5"));
    // The last round of a run sends nothing back through the coordinator: the first three count.
    const auto rows = Rows("--rounds 3 " + options);
    ASSERT_EQ(rows.size(), 4U);
    for (int node = 0; node < 4; ++node) {
      double compute = 0, total = 0, up = 0, down = 0;
      for (const auto& row : log.node_rounds) {
        if (row.node != node || row.round > 3) continue;
        compute += row.compute_s / 3;
        total += (row.compute_s + row.up_s + row.wait_s + row.down_s) / 3;
        up += static_cast<double>(row.up_bytes) / 3;
        down += static_cast<double>(row.down_bytes) / 3;
      }
      auto row = rows[static_cast<std::size_t>(node)];
      EXPECT_NEAR(row["compute_s"], compute, 1e-6) << pattern;
      EXPECT_NEAR(row["total_s"], total, 0.01 * total) << pattern;
      // An offer also carries losses and routing counts, a kilobyte or two.
      EXPECT_NEAR(row["up_bytes"], up, 2000) << pattern;
      EXPECT_NEAR(row["down_bytes"], down, 2000) << pattern;
    }
  }
}

TEST_F(PlanTest, KnowsModelsThatNoMachineHolds) {
  const Outcome outcome =
      Run("plan tiny.yaml --set model.width=8192 --set model.expert_width=100000 --set "
          "model.layers=80 --set nodes.compute.kind=flops --set nodes.compute.device_flops=1e15");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("M parameters, exchange by coordinator, network ideal"));
  EXPECT_THAT(outcome.out, HasSubstr("slowest node   node 3"));
  EXPECT_THAT(outcome.out, HasSubstr("busiest link   node 3 up"));
  EXPECT_THAT(outcome.out, HasSubstr("nothing was trained"));
}

TEST_F(PlanTest, MistakesAreNamed) {
  const auto error = [this](const std::string& options, const std::string& text) {
    const Outcome outcome = Run("plan " + options);
    EXPECT_EQ(outcome.code, 2) << options;
    EXPECT_THAT(outcome.err, HasSubstr(text)) << options;
    EXPECT_EQ(outcome.out, "") << options;
  };
  error("tiny.yaml --set nodes.compute.kind=measured",
        "nodes.compute.kind: measured times a real step, which a plan does not make; set "
        "nodes.compute.kind=fixed and nodes.compute.step_time, or kind=flops");
  error("tiny.yaml --set sync.quorum=2", "a plan times rounds that wait for all nodes");
  error("tiny.yaml --set 'sync.deadline=3 s'", "a plan times rounds that wait for all nodes");
  error("tiny.yaml --rounds 0", "--rounds");
  error("tiny.yaml --format xml", "--format");
  error("absent.yaml", "absent.yaml");
  error("", "SCENARIO");
}

}  // namespace
}  // namespace spes::end_to_end
