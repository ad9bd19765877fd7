#include "app/sweep.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <stdexcept>

#include "app/interrupt.h"
#include "app/sweep_collect.h"
#include "app/sweep_pool.h"
#include "app/sweep_slurm.h"
#include "app/sweep_study.h"
#include "scenarios/nearest.h"

namespace spes::app {

namespace {

constexpr int kPatienceMs = 5000;  // for a sweep that is being killed to let go

// Held while runs of the folder may be started: by a sweep alone, by jobs of a cluster together.
class FolderLock {
 public:
  FolderLock(const SweepFolder& folder, LockedFile::Mode mode)
      : file_(folder.File(".lock"), mode, kPatienceMs) {
    if (!file_.locked()) {
      throw std::runtime_error(fmt::format(
          "{}: another sweep, or a job of one, is at work in this folder", folder.path()));
    }
  }

 private:
  LockedFile file_;
};

// Those that `only` names, by run or by what its seeds share; all where it is empty.
std::vector<const SweepRun*> Chosen(const LoadedStudy& loaded,
                                    const std::vector<std::string>& only) {
  std::vector<const SweepRun*> chosen;
  for (const SweepRun& run : loaded.runs) {
    const bool named = std::ranges::any_of(only, [&run](const std::string& name) {
      return name == run.plan.name || name == run.plan.point;
    });
    if (only.empty() || named) chosen.push_back(&run);
  }
  for (const std::string& name : only) {
    std::vector<std::string> known;
    for (const SweepRun& run : loaded.runs)
      known.insert(known.end(), {run.plan.name, run.plan.point});
    if (std::ranges::find(known, name) == known.end()) {
      throw std::invalid_argument(fmt::format("--only {}: {} has no run of this name{}", name,
                                              loaded.study.path,
                                              scenarios::Suggestion(name, known)));
    }
  }
  return chosen;
}

// Two columns, the first as wide as its longest text.
void PrintFailed(const std::vector<FailedRun>& failed) {
  std::size_t width = 0;
  for (const FailedRun& run : failed) width = std::max(width, run.name.size());
  for (const FailedRun& run : failed) {
    std::cout << fmt::format("  {:<{}}  {}\n", run.name, width, run.why);
  }
}

}  // namespace

SweepCommand::SweepCommand(CLI::App& app)
    : sweep_(app.add_subcommand("sweep", "Run a study: a scenario with some of its keys varied")),
      status_(sweep_->add_subcommand("status", "How many runs have finished, and which failed")),
      collect_(sweep_->add_subcommand("collect", "Write one table of all finished runs")),
      one_(sweep_->add_subcommand("run-one", "")) {
  sweep_->require_subcommand(0, 1);
  one_->group("");  // not in the help
  sweep_->add_option("STUDY", study_, "YAML file of the study");
  sweep_->add_option("--jobs", jobs_, "Runs at once; one per core without it")
      ->type_name("N")
      ->check(CLI::Range(1, 10'000));
  sweep_->add_option("--only", only_, "Run this one, or all seeds of it; repeatable")
      ->type_name("NAME")
      ->allow_extra_args(false);
  sweep_->add_flag("--slurm", slurm_, "Submit the runs to Slurm, as an array of jobs");
  sweep_->add_flag("--quiet", quiet_, "No progress and no summary");
  for (CLI::App* command : {status_, collect_, one_}) {
    command->add_option("STUDY", study_, "YAML file of the study")->required();
  }
  collect_->add_option("--output", output_, "Folder of the table; the study's own without it")
      ->type_name("FOLDER");
  one_->add_option("--index", index_)->required()->check(CLI::NonNegativeNumber);
}

bool SweepCommand::parsed() const { return sweep_->parsed(); }

int SweepCommand::Run() const {
  if (study_.empty())
    throw std::invalid_argument("which study? Give a YAML file; see sweep --help");
  if (status_->parsed()) return Status();
  if (collect_->parsed()) return CollectTable();
  if (one_->parsed()) return One();
  return slurm_ ? Submit() : Sweep();
}

int SweepCommand::Sweep() const {
  const LoadedStudy loaded = LoadStudy(study_);
  const std::vector<const SweepRun*> chosen = Chosen(loaded, only_);
  loaded.folder.Make();
  const FolderLock lock(loaded.folder, LockedFile::Mode::kExclusive);
  loaded.folder.Clean();
  const PoolResult result = RunPool(loaded, chosen, {jobs_, quiet_});
  const int finished = result.finished_before + result.finished;
  if (!quiet_) {
    std::cout << fmt::format("{}: {} of {} runs finished, {} of them before; in {}\n",
                             loaded.study.name, finished, chosen.size(), result.finished_before,
                             loaded.folder.path());
    PrintFailed(result.failed);
    std::cout << std::flush;
  }
  if (result.interrupted) return 128 + InterruptSignal();
  if (!result.failed.empty()) {
    throw std::runtime_error(fmt::format("{} of {} runs failed, the last with: {}",
                                         result.failed.size(), chosen.size(),
                                         result.failed.back().why));
  }
  return 0;
}

int SweepCommand::Submit() const {
  const LoadedStudy loaded = LoadStudy(study_);
  std::vector<int> indices;
  for (const SweepRun* run : Chosen(loaded, only_)) {
    if (!loaded.folder.Finished(*run)) {
      indices.push_back(static_cast<int>(run - loaded.runs.data()));
    }
  }
  if (indices.empty()) {
    if (!quiet_) std::cout << loaded.study.name << ": all runs have finished" << std::endl;
    return 0;
  }
  loaded.folder.Make();
  const FolderLock lock(loaded.folder, LockedFile::Mode::kShared);
  const std::string job = SubmitToSlurm(loaded, indices, jobs_);
  if (!quiet_) {
    std::cout << fmt::format("{}: {} runs submitted as job {}; in {}", loaded.study.name,
                             indices.size(), job, loaded.folder.path())
              << std::endl;
  }
  return 0;
}

int SweepCommand::Status() const {
  const LoadedStudy loaded = LoadStudy(study_);
  int waiting = 0, running = 0, finished = 0;
  std::vector<FailedRun> failed;
  for (const SweepRun& run : loaded.runs) {
    std::string why;
    switch (loaded.folder.State(run, &why)) {
      case RunState::kWaiting:
        ++waiting;
        break;
      case RunState::kRunning:
        ++running;
        break;
      case RunState::kFinished:
        ++finished;
        break;
      case RunState::kFailed:
        failed.push_back({run.plan.name, why});
        break;
    }
  }
  std::cout << fmt::format("{}: {} runs in {}\n", loaded.study.name, loaded.runs.size(),
                           loaded.folder.path())
            << fmt::format(
                   "  waiting   {:6}\n  running   {:6}\n  finished  {:6}\n  failed    {:6}\n",
                   waiting, running, finished, failed.size());
  if (const auto queue = AskSlurm(loaded.folder)) {
    std::cout << fmt::format("Slurm job {}: {} pending, {} running\n", queue->job, queue->pending,
                             queue->running);
  }
  if (!failed.empty()) std::cout << "Failed; the next sweep tries them again:\n";
  PrintFailed(failed);
  std::cout << std::flush;
  return 0;
}

int SweepCommand::CollectTable() const {
  const LoadedStudy loaded = LoadStudy(study_);
  const std::size_t rows = Collect(loaded, output_);
  const std::string folder = output_.empty() ? loaded.folder.path() : output_;
  std::cout << fmt::format("{}: {} of {} runs in {}/table.csv and {}/table.h5", loaded.study.name,
                           rows, loaded.runs.size(), folder, folder)
            << std::endl;
  return 0;
}

int SweepCommand::One() const {
  const LoadedStudy loaded = LoadStudy(study_, index_);
  loaded.folder.Make();
  const FolderLock lock(loaded.folder, LockedFile::Mode::kShared);
  return RunOne(loaded, loaded.runs.front());
}

}  // namespace spes::app
