// Where a run stands, as its status page and /metrics show it.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "trainer/runtime/tcp/tcp_runtime.h"

namespace spes::trainer {

// One node.
struct NodeReport {
  std::string state;                        // one of `states` of the report
  std::optional<TcpNodeStatus> connection;  // nothing in simulation
  std::int32_t last_round = 0;              // the last one that its result was part of; 0: none
  double upload_s = std::numeric_limits<double>::quiet_NaN();  // of that result; NaN: not known
};

struct EvalReport {
  std::string domain;
  double loss = 0;  // nats per token
};

// Everything at one moment. Texts may be anything: whoever shows them escapes them.
struct StatusReport {
  std::string program_version, scenario, scenario_hash;
  std::string state;                   // one of kRunStates
  std::vector<std::string> states;     // that a node can be in
  std::int32_t round = 0, rounds = 0;  // published, and planned
  std::int64_t step = 0, steps = 0;    // of each node: in published rounds, and planned
  double run_s = 0;                    // the run's clock
  double process_s = 0;                // wall time since this process began
  std::int64_t tokens = 0;             // trained so far, all nodes
  std::int64_t bytes = 0;              // up and down in published rounds, all nodes
  std::int64_t resident_bytes = 0;     // of this process
  // Of the coordinator's certificate, in seconds since 1970; nothing where it has none.
  std::optional<std::int64_t> certificate_expires_s;
  std::vector<EvalReport> evals;  // the latest of each domain
  std::vector<NodeReport> nodes;  // [node]
  // When it was made.
  std::chrono::steady_clock::time_point published = std::chrono::steady_clock::now();

  // Now, in seconds.
  double age_s() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - published).count();
  }
};

inline constexpr const char* kRunStates[] = {"waiting", "training", "reducing", "finishing",
                                             "stopping"};

}  // namespace spes::trainer
