#include "app/sweep_run.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <system_error>
#include <vector>

#include "analysis/hdf5/log_reader.h"
#include "analysis/hdf5/table_file.h"
#include "app/own_process.h"
#include "scenarios/printer.h"

namespace spes::app {

namespace fs = std::filesystem;

namespace {

constexpr std::chrono::seconds kGrace{10};  // from being asked to end to being killed
constexpr int kPatienceMs = 5000;           // for a process that is being killed to let go

}  // namespace

RunProcess::RunProcess(const SweepFolder& folder, const SweepRun& run, int workers,
                       std::optional<sim::Time> limit)
    : folder_(folder),
      run_(run),
      text_(folder.Text(run), LockedFile::Mode::kExclusive, kPatienceMs),
      limit_(limit) {
  if (!text_.locked()) {
    throw std::runtime_error(fmt::format("run {}: is under way in another process", run.plan.name));
  }
  folder.ForgetFailure(run);
  analysis::WriteTextFile(folder.Scenario(run), scenarios::PrintScenario(run.scenario));
  if (ftruncate(text_.descriptor(), 0) != 0) {
    throw std::runtime_error(
        fmt::format("{}: cannot be emptied ({})", folder.Text(run), std::strerror(errno)));
  }
  std::vector<std::string> words = {"spes-sim", folder.Scenario(run), "--output",
                                    folder.UnfinishedLog(run)};
  if (workers > 0 && run.scenario.workers == 0) {
    words.insert(words.end(), {"--workers", std::to_string(workers)});
  }
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) BecomeRun(arguments.data(), text_.descriptor(), parent);
  if (pid_ < 0) {
    throw std::runtime_error(
        fmt::format("run {}: no process can be started ({})", run.plan.name, std::strerror(errno)));
  }
}

RunProcess::~RunProcess() {
  if (pid_ < 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

double RunProcess::seconds() const {
  return std::chrono::duration<double>(Clock::now() - start_).count();
}

bool RunProcess::Done() {
  if (pid_ < 0) return true;
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) == pid_) {
    pid_ = -1;
    Judge(status);
    return true;
  }
  if (limit_ && !too_long_ && Clock::now() - start_ > *limit_) {
    too_long_ = true;
    kill(pid_, SIGTERM);
    kill_at_ = Clock::now() + kGrace;
  }
  if (kill_at_ && Clock::now() > *kill_at_) kill(pid_, SIGKILL);
  return false;
}

void RunProcess::Stop() {
  if (pid_ < 0) return;
  kill(pid_, stopped_ ? SIGKILL : SIGTERM);
  stopped_ = true;
  if (!kill_at_) kill_at_ = Clock::now() + kGrace;
}

std::string RunProcess::Complaint(int status) const {
  if (too_long_) {
    return fmt::format("took longer than budget.wall_time allows, {}",
                       sim::FormatDuration(*limit_));
  }
  if (WIFSIGNALED(status)) {
    return fmt::format("was ended by signal {} ({}){}", WTERMSIG(status),
                       strsignal(WTERMSIG(status)),
                       WTERMSIG(status) == SIGKILL ? "; perhaps it needed too much memory" : "");
  }
  if (WEXITSTATUS(status) != 0) {
    const std::string line = ErrorLine(folder_.Text(run_));
    return line.empty() ? fmt::format("exit code {}", WEXITSTATUS(status)) : line;
  }
  try {
    const analysis::RunLog head = analysis::ReadRunLogHead(folder_.UnfinishedLog(run_));
    if (head.status != "complete") return "its log says that it is " + head.status;
    if (head.info.scenario_hash != run_.hash) {
      return "a file that it reads has changed since the sweep began";
    }
    fs::rename(folder_.UnfinishedWorld(run_), folder_.World(run_));
    fs::rename(folder_.UnfinishedLog(run_), folder_.Log(run_));  // last: it says that all is there
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

void RunProcess::Judge(int status) {
  failure_ = Complaint(status);
  if (failure_.empty()) {
    end_ = RunEnd::kFinished;
  } else if (stopped_ && !too_long_) {
    end_ = RunEnd::kInterrupted;
  } else {
    end_ = RunEnd::kFailed;
    folder_.SetFailure(run_, failure_);
  }
}

void WatchChildren() {
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  sigprocmask(SIG_BLOCK, &child, nullptr);
}

void WaitForChild(std::chrono::milliseconds longest) {
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  const timespec time = {.tv_sec = longest.count() / 1000,
                         .tv_nsec = longest.count() % 1000 * 1'000'000};
  sigtimedwait(&child, nullptr, &time);
}

}  // namespace spes::app
