#include "sim/traffic/plan_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace spes::sim {

namespace {

TrafficPlan Valid(TrafficPlan plan, int hosts) {
  Validate(plan, hosts);
  return plan;
}

IndexLists BySender(const TrafficPlan& plan, int hosts) {
  return IndexLists(static_cast<std::size_t>(hosts), [&plan](const auto& add) {
    for (std::size_t i = 0; i < plan.transfers.size(); ++i) {
      add(plan.transfers[i].from, static_cast<int>(i));
    }
  });
}

// Each sender and receiver once, in order.
std::vector<std::pair<int, int>> PairsOf(const TrafficPlan& plan) {
  std::vector<std::pair<int, int>> pairs;
  for (const Transfer& each : plan.transfers) {
    if (each.from != each.to) pairs.emplace_back(each.from, each.to);
  }
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  return pairs;
}

}  // namespace

PlanRunner::PlanRunner(TrafficPlan plan, int hosts, Network& network, Options options,
                       Events events)
    : plan_(Valid(std::move(plan), hosts)),
      hosts_(hosts),
      network_(network),
      options_(options),
      events_(std::move(events)),
      dependents_(plan_),
      outgoing_(BySender(plan_, hosts)),
      pairs_(PairsOf(plan_)) {
  for (const Transfer& each : plan_.transfers) {
    const auto found =
        std::lower_bound(pairs_.begin(), pairs_.end(), std::pair(each.from, each.to));
    pair_of_.push_back(each.from == each.to ? -1 : static_cast<int>(found - pairs_.begin()));
  }
  if (options.streams < 1) {
    throw std::invalid_argument(
        fmt::format("a traffic plan with {} streams per transfer: at least 1", options.streams));
  }
  if (options.sends < 0) {
    throw std::invalid_argument(fmt::format(
        "a traffic plan with {} sends at once: at least 1, or 0 for no limit", options.sends));
  }
}

PlanRunner::~PlanRunner() {
  for (const FlowId id : active_) network_.Cancel(id);
}

void PlanRunner::Prepare() {
  for (const auto& [from, to] : pairs_) network_.Prepare(from, to, options_.streams);
}

void PlanRunner::Begin() {
  if (running_) throw std::logic_error("a traffic plan begun while it runs");
  const auto hosts = static_cast<std::size_t>(hosts_);
  running_ = true;
  ++run_;
  hosts_left_ = hosts_;
  ready_.assign(hosts, false);
  open_.assign(hosts, 1);
  sending_.assign(hosts, 0);
  queues_.assign(hosts, {});
  taken_.assign(pairs_.size(), false);
  behind_.assign(pairs_.size(), {});
  startable_ = {};
  active_.clear();
  waits_.clear();
  for (const Transfer& each : plan_.transfers) {
    waits_.push_back(static_cast<int>(each.after.size()) + 1);
    ++open_[static_cast<std::size_t>(each.from)];
    if (each.to != each.from) ++open_[static_cast<std::size_t>(each.to)];
  }
}

void PlanRunner::Ready(int host) {
  if (!running_) throw std::logic_error("a host ready for a traffic plan that does not run");
  if (ready(host)) throw std::logic_error("a host ready twice for one run of a traffic plan");
  ready_[static_cast<std::size_t>(host)] = true;
  for (const int each : outgoing_.Of(host)) Release(each);
  StepOf(host);
  Drain();
}

void PlanRunner::Release(int transfer) {
  if (--waits_[static_cast<std::size_t>(transfer)] == 0) startable_.push(transfer);
}

// Starts what may start. Joints are over at once and may let others start: one after the other
// here, however long their chain is.
void PlanRunner::Drain() {
  if (draining_) return;  // within a callback: the caller goes on
  draining_ = true;
  while (running_ && !startable_.empty()) {
    const int next = startable_.front();
    startable_.pop();
    Start(next);
  }
  draining_ = false;
  if (running_ && hosts_left_ == 0) {
    running_ = false;
    if (events_.finished) events_.finished();
  }
}

void PlanRunner::Start(int i) {
  if (transfer(i).from == transfer(i).to) return Complete(i);
  const auto pair = static_cast<std::size_t>(pair_of_[static_cast<std::size_t>(i)]);
  if (taken_[pair]) {
    behind_[pair].push(i);
    return;
  }
  taken_[pair] = true;
  queues_[static_cast<std::size_t>(transfer(i).from)].push(i);
  Pump(transfer(i).from);
}

void PlanRunner::Pump(int host) {
  const auto from = static_cast<std::size_t>(host);
  Queue& queue = queues_[from];
  while (!queue.empty() && (options_.sends == 0 || sending_[from] < options_.sends)) {
    const int next = queue.top();
    queue.pop();
    Launch(next);
  }
}

void PlanRunner::Launch(int i) {
  const Transfer& t = transfer(i);
  ++sending_[static_cast<std::size_t>(t.from)];
  const std::weak_ptr<char> alive = alive_;
  active_.insert(
      network_.Start({.from = t.from, .to = t.to, .bytes = t.bytes, .streams = options_.streams},
                     [this, alive, i, run = run_](const FlowResult& result) {
                       if (!alive.expired()) OnFlow(i, run, result);
                     }));
  if (events_.started) events_.started(i);
}

void PlanRunner::OnFlow(int i, std::uint64_t run, const FlowResult& result) {
  const bool current = running_ && run == run_;
  if (current) active_.erase(result.id);
  if (events_.flow) events_.flow(i, result);
  if (!current) return;
  if (result.outcome != FlowOutcome::kDone) {
    Stop();
    if (events_.failed) events_.failed(i, result);
    return;
  }
  const auto from = static_cast<std::size_t>(transfer(i).from);
  const auto pair = static_cast<std::size_t>(pair_of_[static_cast<std::size_t>(i)]);
  --sending_[from];
  taken_[pair] = !behind_[pair].empty();
  if (taken_[pair]) {
    queues_[from].push(behind_[pair].top());
    behind_[pair].pop();
  }
  Pump(transfer(i).from);
  Complete(i);
  Drain();
}

void PlanRunner::Complete(int i) {
  for (const int next : dependents_.Of(i)) Release(next);
  StepOf(transfer(i).from);
  if (transfer(i).to != transfer(i).from) StepOf(transfer(i).to);
}

void PlanRunner::StepOf(int host) {
  if (--open_[static_cast<std::size_t>(host)] > 0) return;
  --hosts_left_;
  if (events_.host_finished) events_.host_finished(host);
}

void PlanRunner::Stop() {
  running_ = false;
  for (const FlowId id : active_) network_.Cancel(id);
  active_.clear();
}

}  // namespace spes::sim
