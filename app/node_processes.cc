#include "app/node_processes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <thread>

#include "analysis/hdf5/table_file.h"
#include "app/own_process.h"
#include "scenarios/printer.h"
#include "scenarios/topology_builder.h"
#include "trainer/runtime/tcp/key_files.h"

namespace spes::app {

namespace fs = std::filesystem;

namespace {

constexpr std::chrono::seconds kGrace{15};        // from being asked to end to being killed
constexpr std::chrono::milliseconds kPause{500};  // before a node that was killed begins anew
constexpr int kMostSignals = 5;                   // that end a node in one round

}  // namespace

NodeProcesses::NodeProcesses(const scenarios::Scenario& scenario, const std::string& address,
                             const std::string& folder, const std::vector<int>& without,
                             const std::string& token, ProgressDisplay& display)
    : address_(address),
      folder_(folder),
      scenario_((fs::path(folder) / "scenario.yaml").string()),
      display_(display) {
  scenarios::Scenario same = scenario;
  same.output.journal = folder;
  same.transport.dial_for = {};  // they end with this process, and it may be stopped for a while
  if (!token.empty()) {
    token_file_ = (fs::path(folder) / "token").string();
    trainer::WriteKeyFile(token_file_, token + "\n", true);
    same.transport.keys = folder;
  }
  analysis::WriteTextFile(scenario_, scenarios::PrintScenario(same));
  for (int node = 0; node < scenarios::NodeCount(scenario); ++node) {
    if (std::find(without.begin(), without.end(), node) != without.end()) continue;
    std::error_code absent;
    fs::rename(Text(node), Text(node) + ".old", absent);  // it may say why the last run failed
    processes_.push_back({node});
    Start(processes_.back());
  }
}

NodeProcesses::~NodeProcesses() {
  for (const Process& process : processes_) {
    if (process.pid > 0) kill(process.pid, SIGTERM);
  }
  const Clock::time_point end = Clock::now() + kGrace;
  for (const Process& process : processes_) {
    if (process.pid <= 0) continue;
    while (waitpid(process.pid, nullptr, WNOHANG) == 0) {
      if (Clock::now() > end) kill(process.pid, SIGKILL);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  std::error_code ignored;
  if (!token_file_.empty()) fs::remove(token_file_, ignored);
}

std::string NodeProcesses::Text(int node) const {
  return (fs::path(folder_) / fmt::format("node-{}.txt", node)).string();
}

void NodeProcesses::Start(Process& process) const {
  std::vector<std::string> words = {"spes-sim", scenario_, "--join",
                                    address_,   "--node",  std::to_string(process.node)};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const std::string text = Text(process.node);
  const int out = open(text.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  const pid_t parent = getpid();
  process.pid = out < 0 ? -1 : fork();
  if (process.pid == 0) BecomeRun(arguments.data(), out, parent);
  const int why = errno;
  if (out >= 0) close(out);
  if (process.pid < 0) {
    throw std::runtime_error(
        fmt::format("node {}: no process can be started ({})", process.node, std::strerror(why)));
  }
}

void NodeProcesses::Tend(std::int32_t round, const std::function<bool(int node)>& may_end) {
  for (Process& process : processes_) {
    if (process.over) continue;
    if (process.pid < 0) {
      if (Clock::now() >= process.start_at) Start(process);
      continue;
    }
    int status = 0;
    if (waitpid(process.pid, &status, WNOHANG) != process.pid) continue;
    process.pid = -1;
    // A node that ends in good order because of a signal says so with 128 + its number.
    const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status) - 128;
    if (signal > 0) {
      if (round > process.round) process.signals = 0;
      process.round = round;
      if (++process.signals >= kMostSignals) {
        throw std::runtime_error(fmt::format("node {} was ended by signal {} {} times in one round",
                                             process.node, signal, process.signals));
      }
      process.start_at = Clock::now() + kPause * (1 << (process.signals - 1));
      display_.Print(
          fmt::format("node {} was ended by signal {}; it begins anew", process.node, signal));
    } else if (WEXITSTATUS(status) == 0 || may_end(process.node)) {
      process.over = true;
    } else {
      throw std::runtime_error(
          fmt::format("node {}: {}", process.node, ErrorLine(Text(process.node))));
    }
  }
}

}  // namespace spes::app
