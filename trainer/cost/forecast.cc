#include "trainer/cost/forecast.h"

#include <algorithm>
#include <array>
#include <memory>
#include <stdexcept>
#include <utility>

#include "sim/event_loop.h"
#include "sim/traffic/plan_runner.h"

namespace spes::trainer {

namespace {

// A node on its way through its rounds.
struct State {
  bool computed = false;
  sim::Time ready{0};        // when it had computed
  int moving = 0;            // transfers from or to it under way
  sim::Time since{0};        // when the first of them began
  sim::Time exchanged{0};    // in this round, after it had computed
  sim::Time ahead_until{0};  // steps of the next round are trained until then
};

class Forecaster {
 public:
  Forecaster(const ExchangeSchedule& schedule, const ForecastConfig& config, sim::Network& network)
      : schedule_(schedule),
        config_(config),
        network_(network),
        loop_(&network),
        together_(schedule.name() != sim::Name(sim::ExchangePattern::kCoordinator)),
        states_(static_cast<std::size_t>(schedule.nodes())) {
    forecast_.nodes.resize(states_.size());
    for (int kind = 0; kind < schedule.kinds(); ++kind) {
      Runners& both = runners_.emplace_back();
      for (const std::size_t odd : {0, 1}) both[odd] = MakeRunner(kind, odd);
      both[0]->Prepare();
    }
  }

  Forecast Run() {
    for (NodeId node = 0; node < schedule_.nodes(); ++node) Begin(node, 1);
    while (forecast_.rounds < config_.rounds && loop_.Step()) {
      if (config_.progress) config_.progress(forecast_.rounds, sim::ToSeconds(loop_.Now()));
    }
    if (forecast_.rounds < config_.rounds) {
      throw std::runtime_error("the forecast stands still: nobody computes and nothing moves");
    }
    forecast_.total_s = sim::ToSeconds(loop_.Now());
    FindBusiestLink();
    return std::move(forecast_);
  }

 private:
  // Two for each kind of round: with the pattern coordinator a node may be ready in the next round
  // while others still receive in this one. Further apart they cannot be.
  using Runners = std::array<std::unique_ptr<sim::PlanRunner>, 2>;

  std::unique_ptr<sim::PlanRunner> MakeRunner(int kind, std::size_t odd) {
    const auto ends = [this, kind](int transfer) {
      const sim::Transfer& t = schedule_.plan(kind).transfers[static_cast<std::size_t>(transfer)];
      return std::array{t.from, t.to};
    };
    sim::PlanRunner::Events events;
    events.host_finished = [this, odd](int host) { OnHostFinished(host, round_[odd]); };
    events.finished = [this, odd] { OnRoundOver(round_[odd]); };
    events.started = [this, ends](int transfer) {
      for (const int host : ends(transfer)) OnStarted(host);
    };
    events.flow = [this, ends](int transfer, const sim::FlowResult&) {
      ++forecast_.flows;
      for (const int host : ends(transfer)) OnEnded(host);
    };
    events.failed = [this, odd](int, const sim::FlowResult& result) {
      throw std::runtime_error(schedule_.FailureText(round_[odd], result));
    };
    return std::make_unique<sim::PlanRunner>(
        schedule_.plan(kind), schedule_.hosts(), network_,
        sim::PlanRunner::Options{.streams = config_.streams, .sends = config_.sends},
        std::move(events));
  }

  bool IsNode(int host) const { return host < schedule_.nodes(); }
  State& state(int node) { return states_[static_cast<std::size_t>(node)]; }
  NodeForecast& sums(int node) { return forecast_.nodes[static_cast<std::size_t>(node)]; }

  sim::Time StepsTime(NodeId node, std::int64_t first, std::int64_t steps) {
    sim::Time charged{0};
    for (std::int64_t i = 0; i < steps; ++i) charged += config_.step_time(node, first + i);
    sums(node).compute_s += sim::ToSeconds(charged);
    return charged;
  }

  void Begin(NodeId node, std::int32_t round) {
    State& s = state(node);
    s.computed = false;
    s.exchanged = sim::Time{0};
    const RoundPlan& plan = schedule_.rounds().round(round);
    const int done = round > 1 ? schedule_.rounds().round(round - 1).ahead : 0;
    const sim::Time begins = std::max(sim::Time{0}, s.ahead_until - loop_.Now());
    const sim::Time charged = StepsTime(node, plan.first_step + done, plan.steps - done);
    loop_.After(begins + charged, [this, node, round] { OnComputed(node, round); });
  }

  void OnComputed(NodeId node, std::int32_t round) {
    state(node).computed = true;
    state(node).ready = loop_.Now();
    const RoundPlan& plan = schedule_.rounds().round(round);
    state(node).ahead_until = loop_.Now() + StepsTime(node, plan.last_step() + 1,
                                                      round < config_.rounds ? plan.ahead : 0);
    const std::size_t odd = static_cast<std::size_t>(round % 2);
    sim::PlanRunner& runner = *runners_[static_cast<std::size_t>(schedule_.KindOf(round))][odd];
    if (round_[odd] != round) {
      round_[odd] = round;
      runner.Begin();
      for (int host = schedule_.nodes(); host < schedule_.hosts(); ++host) runner.Ready(host);
    }
    runner.Ready(node);
  }

  void OnStarted(int host) {
    if (IsNode(host) && state(host).moving++ == 0) state(host).since = loop_.Now();
  }

  void OnEnded(int host) {
    if (!IsNode(host)) return;
    State& s = state(host);
    if (--s.moving == 0 && s.computed) s.exchanged += loop_.Now() - std::max(s.since, s.ready);
  }

  void OnHostFinished(int host, std::int32_t round) {
    if (IsNode(host) && !together_) Next(host, round);
  }

  void OnRoundOver(std::int32_t round) {
    forecast_.rounds = round;
    if (!together_) return;
    for (NodeId node = 0; node < schedule_.nodes(); ++node) Next(node, round);
  }

  // The node is through `round`.
  void Next(NodeId node, std::int32_t round) {
    const State& s = state(node);
    NodeForecast& sum = sums(node);
    // What it trained ahead counts as computation, not as exchange or waiting.
    const sim::Time idle = std::max(sim::Time{0}, loop_.Now() - std::max(s.ready, s.ahead_until));
    const sim::Time exchanged = std::min(idle, s.exchanged);
    sum.exchange_s += sim::ToSeconds(exchanged);
    sum.wait_s += sim::ToSeconds(idle - exchanged);
    const sim::HostBytes& bytes = schedule_.BytesOf(node, round);
    sum.up_bytes += bytes.up;
    sum.down_bytes += bytes.down;
    if (round < config_.rounds) Begin(node, round + 1);
  }

  void FindBusiestLink() {
    const std::vector<sim::LinkUsage> usage = network_.Usage();
    const std::vector<sim::Link>& links = network_.graph().links();
    for (std::size_t i = 0; i < links.size(); ++i) {
      const double could = links[i].bps / 8 * forecast_.total_s;
      const double share = could > 0 ? static_cast<double>(usage[i].wire_bytes) / could : 0;
      if (share > forecast_.busiest.utilisation) {
        forecast_.busiest = {links[i].name, usage[i].wire_bytes, share};
      }
    }
  }

  const ExchangeSchedule& schedule_;
  const ForecastConfig& config_;
  sim::Network& network_;
  sim::EventLoop loop_;
  bool together_;                        // the next round begins for all at once
  std::vector<State> states_;            // [node]
  std::vector<Runners> runners_;         // [kind of round][odd round]
  std::array<std::int32_t, 2> round_{};  // [odd round] at hand
  Forecast forecast_;
};

}  // namespace

int Forecast::SlowestNode() const {
  const auto least = std::min_element(
      nodes.begin(), nodes.end(),
      [](const NodeForecast& a, const NodeForecast& b) { return a.wait_s < b.wait_s; });
  return static_cast<int>(least - nodes.begin());
}

Forecast MakeForecast(const ExchangeSchedule& schedule, const ForecastConfig& config,
                      sim::Network& network) {
  return Forecaster(schedule, config, network).Run();
}

}  // namespace spes::trainer
