// The subcommand sweep: runs of one scenario that differ in a few keys.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace spes::app {

// `spes-sim sweep STUDY` and its own subcommands status, collect and run-one (what a job of a
// cluster calls).
class SweepCommand {
 public:
  // Adds the subcommand and its options to the program's.
  explicit SweepCommand(CLI::App& app);

  bool parsed() const;
  // Returns the exit code. Throws std::invalid_argument where the study or an option is wrong,
  // std::runtime_error where runs failed.
  int Run() const;

 private:
  int Sweep() const;
  int Submit() const;
  int Status() const;
  int CollectTable() const;
  int One() const;

  CLI::App *sweep_, *status_, *collect_, *one_;
  std::string study_, output_;
  std::vector<std::string> only_;
  int jobs_ = 0, index_ = -1;
  bool slurm_ = false, quiet_ = false;
};

}  // namespace spes::app
