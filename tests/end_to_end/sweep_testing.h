// Studies of a tiny scenario, and their tables.
#pragma once

#include <gtest/gtest.h>

#include <csignal>
#include <sstream>
#include <string>
#include <vector>

#include "tests/end_to_end/program.h"

namespace spes::end_to_end {

class SweepTestBase : public ProgramTest {
 protected:
  SweepTestBase() { Write("tiny.yaml", TinyScenario()); }

  // Runs `sweep …` in the background; the caller ends or waits for it.
  pid_t Start(const std::string& arguments) const {
    const std::string command = "cd " + folder.string() + " && exec " SPES_PROGRAM " " + arguments +
                                " >out.txt 2>err.txt </dev/null";
    const pid_t child = fork();
    if (child == 0) {
      execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      _exit(127);
    }
    return child;
  }

  // Exit code, or −signal.
  static int Wait(pid_t child) {
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  // table.csv of a folder as rows of cells, without the columns of the machine that ran it.
  std::vector<std::vector<std::string>> Table(const std::string& at) const {
    constexpr std::size_t kOfTheMachine = 3;
    std::vector<std::vector<std::string>> rows;
    std::istringstream in(Read(at + "/table.csv"));
    for (std::string line; std::getline(in, line);) {
      std::vector<std::string>& cells = rows.emplace_back();
      std::istringstream parts(line);
      for (std::string cell; std::getline(parts, cell, ',');) cells.push_back(cell);
      if (cells.size() < kOfTheMachine) continue;
      cells.resize(cells.size() - kOfTheMachine);
    }
    return rows;
  }

  bool Exists(const std::string& name) const { return std::filesystem::exists(folder / name); }
};

// Two intervals and two seeds.
inline std::string TinyStudy(const std::string& output) {
  return "base: tiny.yaml\n"
         "set: {training.steps: 8, sync.merge.interval: 4}\n"
         "axes:\n"
         "  - {key: sync.every, values: [2, 4]}\n"
         "seeds: 2\n"
         "target_loss: 5.25\n"
         "output: " +
         output + "\n";
}

}  // namespace spes::end_to_end
