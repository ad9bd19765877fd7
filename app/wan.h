// The subcommand wan: a scenario's network in real time, between real processes.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace spes::app {

// `spes-sim wan SCENARIO` keeps a network namespace for each node and the coordinator and carries
// what they send over the scenario's links until it is interrupted; `spes-sim wan SCENARIO --
// COMMAND …` runs the command in each of them, and ends when all have.
class WanCommand {
 public:
  // Adds the subcommand and its options to the program's.
  explicit WanCommand(CLI::App& app);

  bool parsed() const;
  // Returns the exit code. Throws std::invalid_argument where the scenario, or an option, asks for
  // what cannot be; std::runtime_error where the machine cannot do it (no root, no ip command, no
  // TAP devices) or a host's command did not end with 0.
  int Run() const;

 private:
  CLI::App* wan_;
  std::string scenario_, prefix_ = "spes", seed_;
  std::vector<std::string> overrides_, only_, command_;
  bool halt_on_failure_ = false;
};

}  // namespace spes::app
