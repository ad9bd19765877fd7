// `spes-sim keys`: who may take part in a real run.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace spes::app {

class KeysCommand {
 public:
  // Adds the subcommand.
  explicit KeysCommand(CLI::App& app);
  bool parsed() const;
  // Makes what is missing, and says what goes where. Throws std::invalid_argument, one line.
  int Run() const;

 private:
  CLI::App* command_;
  std::string folder_ = "keys";
  std::vector<std::string> hosts_;
  int nodes_ = 0, days_ = 365;
};

}  // namespace spes::app
