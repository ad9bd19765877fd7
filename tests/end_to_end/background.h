// The program in the background, to be waited for or killed.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <optional>
#include <string>
#include <thread>

namespace spes::end_to_end {

class Background {
 public:
  // `arguments` as a shell reads them; what it says goes to `text` in `folder`.
  Background(const std::string& folder, const std::string& arguments, const std::string& text) {
    const std::string command = "cd " + folder + " && exec " SPES_PROGRAM " " + arguments + " >>" +
                                text + " 2>&1 </dev/null";
    pid_ = fork();
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    _exit(127);
  }
  ~Background() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  pid_t pid() const { return pid_; }
  void Signal(int signal) const {
    if (pid_ > 0) kill(pid_, signal);
  }
  // Exit code, −signal where it was killed; nothing when it has not ended in time.
  std::optional<int> Wait(std::chrono::seconds longest = std::chrono::seconds(120)) {
    const auto end = std::chrono::steady_clock::now() + longest;
    int status = 0;
    while (waitpid(pid_, &status, WNOHANG) != pid_) {
      if (std::chrono::steady_clock::now() > end) return std::nullopt;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  pid_t pid_ = -1;
};

}  // namespace spes::end_to_end
