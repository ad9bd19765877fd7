#include "app/own_process.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <fstream>

#include "scenarios/yaml_tree.h"

namespace spes::app {

namespace {
constexpr const char* kSelf = "/proc/self/exe";
}

std::string ErrorLine(const std::string& text_file) {
  constexpr std::string_view kOwn = "spes-sim: ";
  std::ifstream in(text_file);
  std::string own, last;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(kOwn)) own = line.substr(kOwn.size());
    if (!line.empty()) last = line;
  }
  return scenarios::OneLine(own.empty() ? last : own, 500);
}

void SetUpChild(int output, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // it has ended before that
  setpgid(0, 0);                        // Ctrl-C is the parent's to pass on
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int nothing = open("/dev/null", O_RDONLY);
  if (nothing >= 0) dup2(nothing, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  // Not all libraries open their files so that they close by themselves.
  close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
}

void BecomeRun(char* const* arguments, int text, pid_t parent) {
  SetUpChild(text, parent);
  execv(kSelf, arguments);
  _exit(127);
}

}  // namespace spes::app
