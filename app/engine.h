// What trains: in simulation or on real machines, seen from the run around it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "app/hold_back.h"
#include "trainer/protocol/coordinator.h"
#include "trainer/protocol/coordinator_state.h"
#include "trainer/runtime/tcp/tcp_runtime.h"
#include "trainer/sync/allocation.h"

namespace spes::app {

class Engine {
 public:
  virtual ~Engine() = default;

  // Runs until the run is over, or the stop flag that it was given is set; calls `tick` now and
  // then (about every 0.1 s of wall time or more often). Throws std::runtime_error when the run
  // cannot be finished.
  virtual void Run(const std::function<void()>& tick) = 0;

  // Null while its process is down, in simulation.
  virtual const trainer::Coordinator* coordinator() const = 0;
  virtual const trainer::Allocation& allocation() const = 0;
  // The run's clock: virtual time, or wall time since the run began, as its log counts it.
  virtual double NowSeconds() const = 0;
  // Steps that all nodes together have finished, as far as is known here; those before the run was
  // resumed, too.
  virtual std::int64_t steps_done() const = 0;
  // What its connection has seen; nothing where there is none to see: in simulation, and of a node
  // inside this process.
  virtual std::optional<trainer::TcpNodeStatus> ConnectionOf(int node) const = 0;
  // See Runtime::Work.
  virtual void Work(const std::function<void()>& work) { work(); }
  // When the certificate that new connections are shown expires, in seconds since 1970; nothing
  // where there is none.
  virtual std::optional<std::int64_t> certificate_expires_s() const { return std::nullopt; }
  // Wall time that virtual time stood still for real work.
  virtual double waited_for_work_s() const = 0;
};

// Where nodes keep what outlives their process.
struct NodeStates {
  std::string folder;                            // empty: nothing is kept
  std::function<void(const std::string&)> warn;  // with a line for each damaged state
  HoldBack* hold_back = nullptr;                 // until then nothing is written; null: at once
  std::optional<std::int32_t> newest = {};       // later rounds' states are removed; nothing: none
};

// How a run outlives its process.
struct Durability {
  std::optional<trainer::CoordinatorState> resume;                // what it goes on from
  std::function<void(const trainer::CoordinatorState&)> journal;  // empty: nothing is kept
  NodeStates nodes;
  std::uint64_t run = 1;
  std::string scenario_hash;
};

}  // namespace spes::app
