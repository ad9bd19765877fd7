// Runs of a study on this machine, several at once.
#pragma once

#include <string>
#include <vector>

#include "app/sweep_study.h"

namespace spes::app {

struct PoolOptions {
  int jobs = 0;  // at once; 0: one per core
  bool quiet = false;
};

struct FailedRun {
  std::string name, why;
};

struct PoolResult {
  int finished_before = 0, finished = 0;  // without those before
  std::vector<FailedRun> failed;
  bool interrupted = false;  // by a signal; InterruptSignal() says which
};

// Runs those that have not finished. `runs`: of loaded.runs; they share the cores evenly. After
// SIGINT or SIGTERM all are ended in good order, and the next call begins them anew. Throws
// std::runtime_error when a process cannot be started.
PoolResult RunPool(const LoadedStudy& loaded, const std::vector<const SweepRun*>& runs,
                   const PoolOptions& options);

// The run, if it has not finished, in this process' place: what a job of a cluster does. Returns
// the exit code; throws std::runtime_error with one line when it failed.
int RunOne(const LoadedStudy& loaded, const SweepRun& run);

}  // namespace spes::app
