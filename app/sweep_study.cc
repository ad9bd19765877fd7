#include "app/sweep_study.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "analysis/hdf5/log_reader.h"
#include "analysis/hdf5/table_file.h"
#include "scenarios/scenario_hash.h"

namespace spes::app {

namespace fs = std::filesystem;

namespace {
constexpr const char* kUnfinished = "unfinished";
}  // namespace

std::string SweepFolder::UnfinishedLog(const SweepRun& run) const {
  return File(fmt::format("{}/{}.h5", kUnfinished, run.plan.name));
}

std::string SweepFolder::UnfinishedWorld(const SweepRun& run) const {
  return File(fmt::format("{}/{}.safetensors", kUnfinished, run.plan.name));
}

void SweepFolder::Make() const {
  std::error_code error;
  fs::create_directories(File(kUnfinished), error);
  if (error) {
    throw std::invalid_argument(
        fmt::format("{}: cannot make this folder ({}); name another with the study's `output`",
                    path_, error.message()));
  }
}

bool SweepFolder::Finished(const SweepRun& run) const {
  std::error_code ignored;
  if (!fs::exists(Log(run), ignored)) return false;
  try {
    const analysis::RunLog head = analysis::ReadRunLogHead(Log(run));
    return head.status == "complete" && head.info.scenario_hash == run.hash;
  } catch (const std::runtime_error&) {
    return false;  // not a log; the run will put its own there
  }
}

RunState SweepFolder::State(const SweepRun& run, std::string* failure) const {
  if (Finished(run)) return RunState::kFinished;
  std::error_code ignored;
  if (fs::exists(Text(run), ignored) &&
      !LockedFile(Text(run), LockedFile::Mode::kShared, 0).locked()) {
    return RunState::kRunning;
  }
  std::ifstream file(Failure(run));
  std::string hash, why;
  if (!std::getline(file, hash) || !std::getline(file, why) || hash != run.hash) {
    return RunState::kWaiting;
  }
  if (failure != nullptr) *failure = why;
  return RunState::kFailed;
}

void SweepFolder::SetFailure(const SweepRun& run, const std::string& why) const {
  analysis::WriteTextFile(Failure(run), fmt::format("{}\n{}\n", run.hash, why));
}

void SweepFolder::ForgetFailure(const SweepRun& run) const {
  std::error_code ignored;
  fs::remove(Failure(run), ignored);
}

void SweepFolder::Clean() const {
  for (const std::string& folder : {path_, File(kUnfinished)}) {
    std::error_code ignored;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
      if (entry.path().extension() == ".tmp") fs::remove(entry.path(), ignored);
    }
  }
}

LockedFile::LockedFile(const std::string& path, Mode mode, int patience_ms)
    : descriptor_(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
  if (descriptor_ < 0) {
    throw std::invalid_argument(
        fmt::format("{}: cannot be opened for writing ({}); name another folder with the study's "
                    "`output`",
                    path, std::strerror(errno)));
  }
  constexpr int kStep = 50;
  const int operation = (mode == Mode::kShared ? LOCK_SH : LOCK_EX) | LOCK_NB;
  for (int waited = 0; !(locked_ = flock(descriptor_, operation) == 0) && waited < patience_ms;
       waited += kStep) {
    std::this_thread::sleep_for(std::chrono::milliseconds(kStep));
  }
}

LockedFile::~LockedFile() { close(descriptor_); }

LoadedStudy LoadStudy(const std::string& path, int index) {
  scenarios::Study study = scenarios::ReadStudy(path);
  LoadedStudy loaded{study, {}, SweepFolder(fs::absolute(study.output).lexically_normal())};
  std::vector<scenarios::StudyRun> plans = scenarios::StudyRuns(study);
  if (index >= static_cast<int>(plans.size())) {
    throw std::invalid_argument(
        fmt::format("{}: there is no run {}; the last is {}", path, index, plans.size() - 1));
  }
  scenarios::FileDigests digests;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (index >= 0 && static_cast<int>(i) != index) continue;
    SweepRun run{std::move(plans[i]), {}, {}};
    run.scenario = scenarios::ScenarioOf(study, run.plan);
    run.hash = scenarios::IdentityOf(run.scenario, digests).hash;
    loaded.runs.push_back(std::move(run));
  }
  return loaded;
}

}  // namespace spes::app
