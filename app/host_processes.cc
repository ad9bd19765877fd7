#include "app/host_processes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <sstream>
#include <stdexcept>

#include "app/own_process.h"

namespace spes::app {

namespace {

constexpr std::chrono::seconds kGrace{5};  // from being asked to end to being killed
constexpr std::size_t kLongestLine = 1 << 16;

std::string FindProgram(const std::string& name) {
  const auto runs = [](const std::string& path) { return access(path.c_str(), X_OK) == 0; };
  if (name.find('/') != std::string::npos) {
    if (runs(name)) return name;
  } else {
    const char* const path = std::getenv("PATH");
    std::istringstream folders(path == nullptr ? "" : path);
    for (std::string folder; std::getline(folders, folder, ':');) {
      std::string file = (folder.empty() ? "." : folder) + '/' + name;
      if (runs(file)) return file;
    }
  }
  throw std::invalid_argument(fmt::format("{}: there is no such program", name));
}

std::vector<char*> Pointers(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> Environment(
    const std::vector<std::pair<std::string, std::string>>& added) {
  std::vector<std::string> words;
  for (char** word = environ; *word != nullptr; ++word) {
    const std::string text = *word;
    bool replaced = false;
    for (const auto& [key, value] : added) replaced |= text.starts_with(key + '=');
    if (!replaced) words.push_back(text);
  }
  for (const auto& [key, value] : added) words.push_back(fmt::format("{}={}", key, value));
  return words;
}

// In the new process, where only what is safe in a signal handler is safe.
[[noreturn]] void Become(const char* program, char* const* arguments, char* const* environment,
                         int space, int output, pid_t parent) {
  SetUpChild(output, parent);
  const char* failed = "setns";
  if (setns(space, CLONE_NEWNET) == 0) {
    failed = program;
    execve(program, arguments, environment);
  }
  const char* const why = strerrordesc_np(errno);
  for (const char* part : {failed, ": ", why, "\n"}) {
    if (write(STDERR_FILENO, part, std::strlen(part)) < 0) break;
  }
  _exit(127);
}

}  // namespace

HostProcesses::HostProcesses(const std::vector<HostToRun>& hosts,
                             const std::vector<std::string>& command) {
  const std::string program = FindProgram(command.front());
  std::vector<std::string> words = command;
  const std::vector<char*> arguments = Pointers(words);
  const pid_t parent = getpid();
  for (const HostToRun& host : hosts) {
    std::vector<std::string> variables = Environment(host.environment);
    const std::vector<char*> environment = Pointers(variables);
    int ends[2];
    sim::Check(pipe2(ends, O_CLOEXEC), "a pipe");
    Process& process =
        processes_.emplace_back(Process{.name = host.name, .output = sim::Descriptor(ends[0])});
    const sim::Descriptor theirs(ends[1]);
    sim::Check(fcntl(ends[0], F_SETFL, O_NONBLOCK), "a pipe that does not block");
    process.pid = sim::Check(fork(), "a process");
    if (process.pid == 0) {
      Become(program.c_str(), arguments.data(), environment.data(), host.space.descriptor(),
             ends[1], parent);
    }
    setpgid(process.pid, process.pid);  // here too: nobody knows who comes first
    guard_.Add(process.pid);
  }
}

HostProcesses::~HostProcesses() {
  for (const Process& process : processes_) {
    if (process.pid <= 0 || process.status) continue;
    kill(-process.pid, SIGKILL);
    guard_.Remove(process.pid);
    waitpid(process.pid, nullptr, 0);
  }
}

void HostProcesses::Pump(std::chrono::milliseconds longest) {
  std::vector<pollfd> waiting;
  for (const Process& process : processes_) waiting.push_back({process.output.get(), POLLIN, 0});
  poll(waiting.data(), waiting.size(), static_cast<int>(longest.count()));
  Reap();  // before reading: what an ended process has said is all there
  for (Process& process : processes_) Read(process);
  std::cout << std::flush;
}

void HostProcesses::Reap() {
  for (Process& process : processes_) {
    if (process.status) continue;
    siginfo_t ended{};
    if (waitid(P_PID, static_cast<id_t>(process.pid), &ended, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        ended.si_pid != process.pid) {
      continue;
    }
    // Whatever it left in its group, while the group's number is still its own.
    kill(-process.pid, SIGKILL);
    guard_.Remove(process.pid);
    int status = 0;
    waitpid(process.pid, &status, 0);
    process.status = status;
  }
}

void HostProcesses::Read(Process& process) {
  if (process.output.get() < 0) return;
  const auto print = [&process](const std::string& line) {
    std::cout << process.name << ": " << line << '\n';
  };
  std::array<char, 65536> buffer;
  bool open = true;
  for (;;) {
    const ssize_t n = read(process.output.get(), buffer.data(), buffer.size());
    if (n <= 0) {
      open = n < 0 && (errno == EAGAIN || errno == EINTR);
      break;
    }
    for (const char c : std::string_view(buffer.data(), static_cast<std::size_t>(n))) {
      if (c != '\n') process.line += c;
      if (c == '\n' || process.line.size() >= kLongestLine) {
        print(process.line);
        process.line.clear();
      }
    }
  }
  if (open && !process.status) return;
  if (!process.line.empty()) print(process.line);
  process.line.clear();
  process.output = {};
}

bool HostProcesses::Done() const {
  for (const Process& process : processes_) {
    if (!process.status) return false;
  }
  return true;
}

void HostProcesses::Stop() {
  const bool kill_now = asked_ && Clock::now() - *asked_ > kGrace;
  if (asked_ && !kill_now) return;
  if (!asked_) asked_ = Clock::now();
  for (const Process& process : processes_) {
    if (!process.status) kill(-process.pid, kill_now ? SIGKILL : SIGTERM);
  }
}

std::string HostProcesses::Failures() const {
  std::string failures;
  for (const Process& process : processes_) {
    const int status = process.status.value_or(0);
    if (status == 0) continue;
    if (!failures.empty()) failures += ", ";
    failures += process.name;
    failures += WIFSIGNALED(status) ? fmt::format(" ended by signal {}", WTERMSIG(status))
                                    : fmt::format(" ended with {}", WEXITSTATUS(status));
  }
  return failures;
}

}  // namespace spes::app
