#include "app/sweep_slurm.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <system_error>

#include "analysis/hdf5/table_file.h"
#include "scenarios/yaml_tree.h"

namespace spes::app {

namespace fs = std::filesystem;

namespace {

constexpr const char* kJobFile = "slurm.job";
constexpr const char* kScript = "slurm.sh";
constexpr const char* kTexts = "slurm";  // folder of what the jobs say

std::string ForShell(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

struct CommandResult {
  int code = -1;
  std::string output;  // and errors
};

CommandResult Command(const std::string& command) {
  const auto close = [](FILE* pipe) { pclose(pipe); };
  std::unique_ptr<FILE, decltype(close)> pipe(popen((command + " 2>&1 </dev/null").c_str(), "r"),
                                              close);
  CommandResult result;
  if (!pipe) return result;
  char buffer[4096];
  for (std::size_t n; (n = fread(buffer, 1, sizeof buffer, pipe.get())) > 0;) {
    result.output.append(buffer, n);
  }
  const int status = pclose(pipe.release());
  result.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return result;
}

// "0-3,7": Slurm's way to write a set of numbers in ascending order.
std::string Ranges(const std::vector<int>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ",", numbers[i]);
    if (last > i) text += fmt::format("-{}", numbers[last]);
    i = last + 1;
  }
  return text;
}

std::string Script(const LoadedStudy& loaded, const std::vector<int>& indices, int jobs) {
  const scenarios::SlurmSection& slurm = loaded.study.slurm;
  std::string text = "#!/bin/sh\n";
  const auto option = [&text](const std::string& words) { text += "#SBATCH " + words + "\n"; };
  option(fmt::format("--job-name=\"{}\"", loaded.study.name));
  option(fmt::format("--array={}{}", Ranges(indices), jobs > 0 ? fmt::format("%{}", jobs) : ""));
  option(fmt::format("--chdir=\"{}\"", fs::current_path().string()));
  option(fmt::format("--output=\"{}/%A_%a.txt\"", loaded.folder.File(kTexts)));
  if (!slurm.partition.empty()) option("--partition=" + slurm.partition);
  if (slurm.time) {
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(*slurm.time).count();
    option(fmt::format("--time={}-{:02}:{:02}:{:02}", seconds / 86400, seconds / 3600 % 24,
                       seconds / 60 % 60, seconds % 60));
  }
  if (slurm.memory_bytes > 0) option(fmt::format("--mem={}K", (slurm.memory_bytes + 1023) / 1024));
  if (slurm.gpus > 0) option(fmt::format("--gres=gpu:{}", slurm.gpus));
  if (slurm.cpus > 0) option(fmt::format("--cpus-per-task={}", slurm.cpus));
  for (const std::string& extra : slurm.extra) option(extra);
  const fs::path program = fs::read_symlink("/proc/self/exe");
  text += fmt::format("exec {} sweep run-one {} --index \"$SLURM_ARRAY_TASK_ID\"\n",
                      ForShell(program.string()),
                      ForShell(fs::absolute(loaded.study.path).lexically_normal().string()));
  return text;
}

}  // namespace

std::string SubmitToSlurm(const LoadedStudy& loaded, const std::vector<int>& indices, int jobs) {
  if (const auto queue = AskSlurm(loaded.folder); queue && queue->pending + queue->running > 0) {
    throw std::runtime_error(
        fmt::format("{}: {} tasks of its job {} are still queued or running; wait for them, or "
                    "scancel {} first",
                    loaded.study.path, queue->pending + queue->running, queue->job, queue->job));
  }
  std::error_code ignored;
  fs::create_directories(loaded.folder.File(kTexts), ignored);
  const std::string script = loaded.folder.File(kScript);
  analysis::WriteTextFile(script, Script(loaded, indices, jobs));
  const CommandResult result = Command("sbatch --parsable " + ForShell(script));
  if (result.code == 127) {
    throw std::runtime_error("there is no sbatch here; --slurm is for a machine that submits jobs");
  }
  if (result.code != 0) {
    throw std::runtime_error(
        fmt::format("sbatch did not take {}: {}", script, scenarios::OneLine(result.output, 300)));
  }
  const std::string last = result.output.substr(0, result.output.find_last_not_of(" \n") + 1);
  std::string job = last.substr(last.rfind('\n') + 1);  // warnings come before it
  job = job.substr(0, job.find(';'));                   // "job;cluster"
  analysis::WriteTextFile(loaded.folder.File(kJobFile), job + "\n");
  return job;
}

std::optional<SlurmQueue> AskSlurm(const SweepFolder& folder) {
  SlurmQueue queue;
  std::ifstream file(folder.File(kJobFile));
  if (!std::getline(file, queue.job) || queue.job.empty()) return std::nullopt;
  const CommandResult result = Command("squeue -h -r -o %T -j " + ForShell(queue.job));
  if (result.code == 127) return std::nullopt;
  if (result.code != 0) return queue;  // Slurm forgets jobs that ended some time ago
  std::istringstream lines(result.output);
  for (std::string state; std::getline(lines, state);) {
    ++(state == "PENDING" ? queue.pending : queue.running);
  }
  return queue;
}

}  // namespace spes::app
