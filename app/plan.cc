#include "app/plan.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <iostream>
#include <memory>
#include <stdexcept>

#include "app/make_network.h"
#include "scenarios/cost_builder.h"
#include "scenarios/exchange.h"
#include "scenarios/faults.h"
#include "scenarios/sync_builder.h"
#include "scenarios/topology_builder.h"
#include "trainer/cost/forecast.h"
#include "trainer/cost/forecast_text.h"
#include "trainer/model/config.h"

namespace spes::app {

namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point t) {
  return std::chrono::duration<double>(Clock::now() - t).count();
}

void Check(const scenarios::Scenario& scenario) {
  if (scenario.nodes.compute.kind == trainer::ComputeCost::kMeasured) {
    throw std::invalid_argument(
        "nodes.compute.kind: measured times a real step, which a plan does not make; set "
        "nodes.compute.kind=fixed and nodes.compute.step_time, or kind=flops, device_flops and "
        "efficiency");
  }
  if (scenario.sync.rotate.every > 0) {
    throw std::invalid_argument(
        "sync.rotate: a plan times rounds that are alike, with experts that keep their nodes; set "
        "sync.rotate.every=0");
  }
  const int quorum = scenario.sync.quorum;
  if (scenario.sync.deadline || (quorum > 0 && quorum < scenarios::NodeCount(scenario))) {
    throw std::invalid_argument(
        "sync: a plan times rounds that wait for all nodes; set sync.quorum to 0 and leave "
        "sync.deadline out");
  }
  if (scenarios::HasFaults(scenario)) {
    throw std::invalid_argument(
        "faults: a plan times rounds in which nothing goes wrong; set faults.scripted=[] and "
        "faults.random=[]");
  }
}

// A line on the terminal that is written over once a second.
class ProgressLine {
 public:
  explicit ProgressLine(std::int32_t rounds) : rounds_(rounds), shown_(isatty(STDERR_FILENO)) {}
  ~ProgressLine() {
    if (written_) std::fputs("\r\033[K", stderr);
  }
  void Show(std::int32_t done, double virtual_s) {
    if (!shown_ || SecondsSince(last_) < 1) return;
    last_ = Clock::now();
    written_ = true;
    const std::string line =
        fmt::format("\r\033[Kround {} of {}, {} of virtual time", done + 1, rounds_,
                    sim::FormatDuration(sim::FromSeconds(virtual_s), 4));
    std::fputs(line.c_str(), stderr);
  }

 private:
  std::int32_t rounds_;
  bool shown_;
  bool written_ = false;
  Clock::time_point last_ = Clock::now();
};

std::string_view LevelName(scenarios::Fidelity fidelity) {
  switch (fidelity) {
    case scenarios::Fidelity::kIdeal:
      return "ideal";
    case scenarios::Fidelity::kFluid:
      return "fluid";
    case scenarios::Fidelity::kHybrid:
      return "hybrid";
    case scenarios::Fidelity::kCoarse:
      return "coarse";
    case scenarios::Fidelity::kPacket:
      return "packet";
  }
  throw std::logic_error("an unknown level of the network");
}

}  // namespace

int Plan(const scenarios::Scenario& scenario, std::int32_t rounds, const std::string& format) {
  Check(scenario);
  const Clock::time_point start = Clock::now();
  const auto table = trainer::MakeBlockTable(scenario.model);
  const int nodes = scenarios::NodeCount(scenario);
  const trainer::Allocation allocation = scenarios::BuildAllocation(scenario, *table);
  const sim::Topology topology = scenarios::BuildTopology(scenario);
  trainer::ExchangeConfig exchange = scenarios::BuildExchange(scenario, topology);
  exchange.schedule.total_steps = std::int64_t{rounds} * exchange.schedule.every;
  const trainer::ExchangeSchedule schedule(*table, allocation, exchange);
  const std::unique_ptr<sim::Network> network = MakeNetwork(scenario, topology);

  const trainer::CostModel cost = scenarios::BuildCostModel(scenario);
  ProgressLine line(rounds);
  trainer::ForecastConfig config;
  config.rounds = rounds;
  config.step_time = [&cost](trainer::NodeId node, std::int64_t step) {
    return cost.StepTime(node, step);
  };
  config.streams = scenario.network.tcp.streams;
  config.sends = scenario.network.exchange.sends;
  config.progress = [&line](std::int32_t done, double virtual_s) { line.Show(done, virtual_s); };
  const trainer::Forecast forecast = trainer::MakeForecast(schedule, config, *network);

  if (format == "csv") {
    std::cout << trainer::ForecastCsv(forecast) << std::flush;
    return 0;
  }
  trainer::ForecastContext context;
  context.scenario = scenario.name;
  context.pattern = std::string(schedule.name());
  context.network = std::string(LevelName(scenario.network.fidelity));
  context.parameters = table->TotalElements();
  const double steps =
      static_cast<double>(schedule.rounds().round(rounds).last_step()) / rounds;  // of a round
  context.tokens_per_round = static_cast<std::int64_t>(
      nodes * steps * static_cast<double>(scenario.training.sequences * scenario.training.context));
  context.wall_s = SecondsSince(start);
  std::cout << trainer::ForecastText(forecast, context) << std::flush;
  return 0;
}

}  // namespace spes::app
