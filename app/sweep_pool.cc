#include "app/sweep_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <deque>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>

#include "app/interrupt.h"
#include "app/sweep_run.h"
#include "app/terminal.h"

namespace spes::app {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLook{200};

std::string Duration(double seconds) {
  return sim::FormatDuration(sim::FromSeconds(seconds), seconds < 100 ? 2 : 3);
}

class Pool {
 public:
  Pool(const LoadedStudy& loaded, const std::vector<const SweepRun*>& runs,
       const PoolOptions& options)
      : loaded_(loaded), options_(options), total_(runs.size()) {
    for (const SweepRun* run : runs) {
      if (loaded.folder.Finished(*run)) {
        ++result_.finished_before;
      } else {
        waiting_.push_back(run);
      }
    }
    const int cores = std::max(1U, std::thread::hardware_concurrency());
    const int most = options.jobs > 0 ? options.jobs : cores;
    jobs_ = std::clamp(static_cast<int>(waiting_.size()), 1, most);
    workers_ = jobs_ > 1 ? std::max(1, cores / jobs_) : 0;
  }

  PoolResult Run() {
    WatchChildren();
    Show(true);
    while (!running_.empty() || (!waiting_.empty() && !stop_)) {
      while (!stop_ && !waiting_.empty() && running_.size() < static_cast<std::size_t>(jobs_)) {
        running_.push_back(std::make_unique<RunProcess>(loaded_.folder, *waiting_.front(), workers_,
                                                        loaded_.study.budget.wall_time));
        waiting_.pop_front();
      }
      Show(false);
      WaitForChild(kLook);
      if (stop_ && !result_.interrupted) {
        result_.interrupted = true;
        for (const auto& process : running_) process->Stop();
      }
      std::erase_if(running_, [this](const auto& process) {
        if (!process->Done()) return false;
        OnEnd(*process);
        return true;
      });
    }
    result_.interrupted = result_.interrupted || stop_;
    line_.End();
    return std::move(result_);
  }

 private:
  void OnEnd(const RunProcess& process) {
    const std::string& name = process.run().plan.name;
    if (process.end() == RunEnd::kInterrupted) return;
    if (process.end() == RunEnd::kFailed) {
      result_.failed.push_back({name, process.failure()});
      if (!options_.quiet) line_.Print(fmt::format("{} failed: {}", name, process.failure()));
    } else {
      ++result_.finished;
      if (!options_.quiet && !line_.terminal()) {
        line_.Print(fmt::format("{} of {}: {} finished in {}",
                                result_.finished_before + result_.finished, total_, name,
                                Duration(process.seconds())));
      }
    }
  }

  // On a terminal, where the whole sweep is.
  void Show(bool now) {
    if (options_.quiet || !line_.terminal() || (!now && Clock::now() < next_)) return;
    next_ = Clock::now() + kLook;
    std::string text =
        fmt::format("{} of {} finished", result_.finished_before + result_.finished, total_);
    if (!result_.failed.empty()) text += fmt::format(", {} failed", result_.failed.size());
    text += fmt::format(", {} running", running_.size());
    const double so_far_s = std::chrono::duration<double>(Clock::now() - start_).count();
    text += fmt::format(", {}", Duration(so_far_s));
    const auto ended =
        static_cast<double>(result_.finished) + static_cast<double>(result_.failed.size());
    const auto left = static_cast<double>(waiting_.size() + running_.size());
    if (ended > 0 && left > 0) {
      text += fmt::format(", about {} left", Duration(so_far_s / ended * left));
    }
    line_.Show(text);
  }

  const LoadedStudy& loaded_;
  PoolOptions options_;
  std::size_t total_;
  int jobs_ = 1, workers_ = 0;
  const std::atomic<bool>& stop_ = InstallInterruptHandlers();
  std::deque<const SweepRun*> waiting_;
  std::vector<std::unique_ptr<RunProcess>> running_;
  PoolResult result_;
  LiveLine line_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point next_ = start_;
};

// The cores that a cluster gave to this job; 0 where it does not say.
int CoresOfTheJob() {
  const char* cores = std::getenv("SLURM_CPUS_ON_NODE");
  return cores == nullptr ? 0 : std::max(0, std::atoi(cores));
}

}  // namespace

PoolResult RunPool(const LoadedStudy& loaded, const std::vector<const SweepRun*>& runs,
                   const PoolOptions& options) {
  return Pool(loaded, runs, options).Run();
}

int RunOne(const LoadedStudy& loaded, const SweepRun& run) {
  if (loaded.folder.Finished(run)) return 0;
  const std::atomic<bool>& stop = InstallInterruptHandlers();
  WatchChildren();
  RunProcess process(loaded.folder, run, CoresOfTheJob(), loaded.study.budget.wall_time);
  for (bool told = false; !process.Done(); WaitForChild(kLook)) {
    if (stop && !told) process.Stop();
    told = told || stop;
  }
  if (process.end() == RunEnd::kInterrupted) return 128 + InterruptSignal();
  if (process.end() == RunEnd::kFailed) {
    throw std::runtime_error(fmt::format("run {}: {}", run.plan.name, process.failure()));
  }
  return 0;
}

}  // namespace spes::app
