// A folder of a test's own, and a child process that a test may kill.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <utility>

namespace spes::analysis {

class Scratch {
 public:
  Scratch() {
    std::string name = (std::filesystem::temp_directory_path() / "spes-analysis-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    folder_ = name;
  }
  ~Scratch() { std::filesystem::remove_all(folder_); }

  std::string operator/(const std::string& name) const { return (folder_ / name).string(); }

 private:
  std::filesystem::path folder_;
};

// Runs a function in a forked process. The function may send numbers, which the test receives in
// order; what it returns is the exit status, 70 when it throws.
class Child {
 public:
  template <class Function>
  explicit Child(Function function) {
    int ends[2];
    if (pipe(ends) != 0) throw std::runtime_error("no pipe");
    pid_ = fork();
    if (pid_ == 0) {
      close(ends[0]);
      pipe_ = ends[1];
      int status = 70;
      try {
        status = function([this](int number) { Send(number); });
      } catch (const std::exception& error) {
        fprintf(stderr, "child: %s\n", error.what());
      }
      _exit(status);
    }
    close(ends[1]);
    pipe_ = ends[0];
  }
  ~Child() {
    if (pid_ > 0) Kill();
    close(pipe_);
  }

  // The next number, or −1 when the child has ended without one.
  int Receive() {
    int number = -1;
    return read(pipe_, &number, sizeof number) == sizeof number ? number : -1;
  }
  void Kill() {
    kill(pid_, SIGKILL);
    Wait();
  }
  // Exit status; −1 where a signal ended it.
  int Wait() {
    int status = 0;
    waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  void Send(int number) {
    if (write(pipe_, &number, sizeof number) != sizeof number) _exit(71);
  }

  pid_t pid_ = -1;
  int pipe_ = -1;
};

// The one line of the exception that `action` throws; empty where it throws none of this type.
template <class Exception, class Action>
std::string Message(Action action) {
  try {
    action();
  } catch (const Exception& error) {
    return error.what();
  }
  return "";
}

}  // namespace spes::analysis
