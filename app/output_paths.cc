#include "app/output_paths.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <system_error>

#include "app/durable_run.h"

namespace spes::app {

namespace fs = std::filesystem;

namespace {

void CheckWritable(const std::string& file, const char* named_with) {
  const std::string probe = file + ".probe";
  if (fs::is_directory(file) || !std::ofstream(probe)) {
    throw std::invalid_argument(fmt::format(
        "{}: cannot be written; name a file in a folder that exists and is yours with {}", file,
        named_with));
  }
  fs::remove(probe);
}

}  // namespace

OutputPaths CheckedOutputPaths(const scenarios::Scenario& scenario) {
  OutputPaths paths{LogPath(scenario), scenario.output.world};
  if (scenario.output.log.empty()) {
    const fs::path folder = fs::path(paths.log).parent_path();
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) {
      throw std::invalid_argument(
          fmt::format("{}: cannot make this folder ({}); name another place with --output",
                      folder.string(), error.message()));
    }
  }
  if (paths.world.empty()) paths.world = fs::path(paths.log).replace_extension(".safetensors");
  if (fs::absolute(paths.log).lexically_normal() == fs::absolute(paths.world).lexically_normal()) {
    throw std::invalid_argument(fmt::format(
        "{}: the log and the world cannot be one file; name another with output.world", paths.log));
  }
  CheckWritable(paths.log, "--output");
  if (!scenario.output.world.empty()) CheckWritable(paths.world, "output.world");
  return paths;
}

}  // namespace spes::app
