// One run of a study as a process of its own.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>

#include "app/sweep_study.h"

namespace spes::app {

enum class RunEnd { kFinished, kFailed, kInterrupted };

// Started when made; ends with this process, whatever ends that. Until it is Done, the run's text
// file is locked by it.
class RunProcess {
 public:
  // `workers`: threads that train, 0 for as many as the scenario says. `limit`: of its wall time.
  // Throws std::runtime_error with one line when it cannot be started, also because the run is
  // under way already.
  RunProcess(const SweepFolder& folder, const SweepRun& run, int workers,
             std::optional<sim::Time> limit);
  // Kills it if it is still there.
  ~RunProcess();
  RunProcess(const RunProcess&) = delete;
  RunProcess& operator=(const RunProcess&) = delete;

  const SweepRun& run() const { return run_; }
  double seconds() const;

  // Looks whether it has ended, without waiting; ends it when its time is over. Once it has, the
  // log and the world of a run that finished are in their place, or the reason why it did not is.
  bool Done();
  // Asks it to end in good order; a second time, or after some seconds, it is killed.
  void Stop();

  // Of a run that is done.
  RunEnd end() const { return end_; }
  const std::string& failure() const { return failure_; }

 private:
  using Clock = std::chrono::steady_clock;

  void Judge(int status);
  // What is wrong with a process that has ended with this status; empty: nothing.
  std::string Complaint(int status) const;

  const SweepFolder& folder_;
  const SweepRun& run_;
  LockedFile text_;
  std::optional<sim::Time> limit_;
  Clock::time_point start_ = Clock::now();
  std::optional<Clock::time_point> kill_at_;
  bool stopped_ = false, too_long_ = false;
  pid_t pid_ = -1;
  RunEnd end_ = RunEnd::kInterrupted;
  std::string failure_;
};

// Blocks SIGCHLD, so that WaitForChild can wait for it. Processes that are started meanwhile by
// RunProcess do not inherit that.
void WatchChildren();
// Returns when a child has ended, a signal came, or the time is over.
void WaitForChild(std::chrono::milliseconds longest);

}  // namespace spes::app
