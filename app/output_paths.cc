#include "app/output_paths.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <system_error>

#include "app/durable_run.h"

namespace spes::app {

namespace fs = std::filesystem;

void RequireFolderOf(const std::string& file) {
  fs::path path = fs::absolute(file);
  if (path.filename().empty()) path = path.parent_path();  // "name/"
  const fs::path folder = path.parent_path();
  std::error_code error;
  if (fs::is_directory(folder, error)) return;
  throw std::invalid_argument(
      fmt::format("{}: there is no folder {}; create it", file, folder.string()));
}

namespace {

void CheckWritable(const std::string& file, const std::string& named_with) {
  RequireFolderOf(file);
  const std::string probe = file + ".probe";
  const bool folder = fs::is_directory(file) || fs::path(file).filename().empty();
  if (folder || !std::ofstream(probe)) {
    throw std::invalid_argument(fmt::format(
        "{}: cannot be written; name a file in a folder that exists and is yours with {}", file,
        named_with));
  }
  fs::remove(probe);
}

// Those that the program has chosen itself.
void MakeFolderOf(const std::string& file) {
  const fs::path folder = fs::path(file).parent_path();
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    throw std::invalid_argument(
        fmt::format("{}: cannot make this folder ({}); name another place with --output",
                    folder.string(), error.message()));
  }
}

}  // namespace

OutputPaths CheckedOutputPaths(const scenarios::Scenario& scenario) {
  OutputPaths paths{LogPath(scenario), scenario.output.world};
  if (scenario.output.log.empty()) MakeFolderOf(paths.log);
  if (paths.world.empty()) paths.world = fs::path(paths.log).replace_extension(".safetensors");
  if (fs::absolute(paths.log).lexically_normal() == fs::absolute(paths.world).lexically_normal()) {
    throw std::invalid_argument(fmt::format(
        "{}: the log and the world cannot be one file; name another with output.world", paths.log));
  }
  CheckWritable(paths.log, "--output");
  if (!scenario.output.world.empty()) CheckWritable(paths.world, "output.world");
  return paths;
}

void CheckJournalFolder(const scenarios::Scenario& scenario) {
  const std::string folder = JournalFolder(scenario);
  if (folder.empty()) return;
  const bool chosen = scenario.output.log.empty() && scenario.output.journal.empty();
  if (chosen) MakeFolderOf(folder);
  const char* named_with = scenario.output.journal.empty() ? "--output" : "output.journal";
  if (scenario.output.journal.empty() && fs::path(LogPath(scenario)).filename().empty()) {
    CheckWritable(LogPath(scenario), named_with);
  }
  CheckWritable(fs::is_directory(folder) ? (fs::path(folder) / "node").string() : folder,
                named_with);
}

}  // namespace spes::app
