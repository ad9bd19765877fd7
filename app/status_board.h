// Shows where a run stands: transport.status.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "analysis/partial_recorder.h"
#include "analysis/run_summary.h"
#include "app/engine.h"
#include "trainer/runtime/tcp/status_server.h"

namespace spes::app {

// Gathers the facts on the run's thread and hands them to the server's.
class StatusBoard final : public analysis::PartialRecorder {
 public:
  // Listens at `address`. `plan`: names, planned rounds and steps; one node for each of the run.
  // `step_tokens`: what one of them trains on in a step. Throws std::invalid_argument, one line,
  // when the address cannot be had.
  StatusBoard(const std::string& address, trainer::StatusReport plan, std::int64_t step_tokens);

  // Where it listens, and whether only this machine can reach it.
  std::string address() const { return server_->address(); }
  bool loopback() const { return server_->loopback(); }

  // Where the run stands now: once a second, and when its state has changed. To be called more
  // often than that, all the time. `stopping`: it has been told to end early.
  void Tick(const Engine& engine, const analysis::RunSummary& summary, bool stopping);

  using PartialRecorder::Record;
  void Record(const analysis::NodeRoundRecord& r) override;

 private:
  void Publish();

  using Clock = std::chrono::steady_clock;

  trainer::StatusReport report_;
  std::int64_t step_tokens_;
  std::unique_ptr<trainer::StatusServer> server_;
  Clock::time_point start_ = Clock::now(), next_ = start_;
  std::string shown_state_;
};

}  // namespace spes::app
