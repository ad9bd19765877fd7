#include "app/group_guard.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace spes::app {

namespace {

// In the new process, where only what is safe in a signal handler is safe. Numbers come through the
// pipe: a group's when it begins, less than zero when it ends.
[[noreturn]] void Guard(int pipe) {
  setsid();  // what is sent to our group, SIGKILL too, is not for it
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::signal(signal, SIG_IGN);
  dup2(pipe, STDIN_FILENO);
  close_range(STDIN_FILENO + 1, ~0U, 0);  // nobody waits for it, no device lives on by it
  std::array<pid_t, 256> groups{};
  for (pid_t group = 0;;) {
    const ssize_t n = read(STDIN_FILENO, &group, sizeof group);
    if (n < 0 && errno == EINTR) continue;
    if (n != sizeof group) break;
    const auto place = std::find(groups.begin(), groups.end(), group > 0 ? 0 : -group);
    if (place != groups.end()) *place = std::max(group, 0);
  }
  for (const pid_t group : groups) {
    if (group > 0) kill(-group, SIGKILL);
  }
  _exit(0);
}

void Tell(const sim::Descriptor& pipe, pid_t group) {
  // Less than a pipe takes at once.
  while (write(pipe.get(), &group, sizeof group) < 0 && errno == EINTR) continue;
}

}  // namespace

GroupGuard::GroupGuard() {
  int ends[2];
  sim::Check(pipe2(ends, O_CLOEXEC), "a pipe");
  const sim::Descriptor theirs(ends[0]);
  tell_ = sim::Descriptor(ends[1]);
  guard_ = sim::Check(fork(), "a process");
  if (guard_ == 0) Guard(ends[0]);
}

GroupGuard::~GroupGuard() {
  tell_ = {};
  while (waitpid(guard_, nullptr, 0) < 0 && errno == EINTR) continue;
}

void GroupGuard::Add(pid_t group) { Tell(tell_, group); }

void GroupGuard::Remove(pid_t group) { Tell(tell_, -group); }

}  // namespace spes::app
