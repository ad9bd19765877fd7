// Starts the program and keeps what it says.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace spes::end_to_end {

struct Outcome {
  int code = -1;  // exit code; −signal when it was killed
  std::string out, err;
};

// A folder of its own for each test, removed afterwards.
class ProgramTest : public ::testing::Test {
 protected:
  ProgramTest() {
    std::string name = (std::filesystem::temp_directory_path() / "spes-XXXXXX").string();
    folder = mkdtemp(name.data());
  }
  ~ProgramTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }

  std::string Path(const std::string& name) const { return (folder / name).string(); }

  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(folder / name) << text;
  }

  // `arguments` as a shell reads them; `prefix` goes before the program's name.
  Outcome Run(const std::string& arguments, const std::string& prefix = "") const {
    const std::string command = "cd " + folder.string() + " && " + prefix + " " SPES_PROGRAM " " +
                                arguments + " >out.txt 2>err.txt </dev/null";
    const int status = std::system(command.c_str());
    Outcome outcome;
    outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    outcome.out = Read("out.txt");
    outcome.err = Read("err.txt");
    return outcome;
  }

  std::string Read(const std::string& name) const {
    std::ifstream file(folder / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::filesystem::path folder;
};

// Four nodes, a tiny model, the synthetic language, two rounds: a second or less.
inline const char* TinyScenario() {
  return R"(model: {layers: 2, width: 32, heads: 2, kv_heads: 2, experts: 4, expert_width: 32}
data:
  domains: [{name: synthetic, synthetic: true, synthetic_tokens: 20000}]
  eval_tokens: 512
training: {steps: 8, sequences: 2, context: 16, warmup_steps: 2}
nodes:
  groups:
    - {count: 3, link: {down: 100 Mbps, up: 20 Mbps, rtt: 10 ms}}
    - {count: 1, speed: 0.5, link: {down: 50 Mbps, up: 5 Mbps, rtt: 40 ms}}
  compute: {kind: fixed, step_time: 100 ms, jitter: 0.1}
sync: {every: 4, merge: {interval: 4, alpha: 0.1, length: 100}}
network:
  fidelity: ideal
  coordinator_link: {down: 1 Gbps, up: 1 Gbps, rtt: 1 ms}
)";
}

}  // namespace spes::end_to_end
