#include "app/finished_run.h"

#include <exception>
#include <filesystem>
#include <system_error>
#include <vector>

#include "analysis/hdf5/log_reader.h"
#include "analysis/recorder.h"

namespace spes::app {

namespace fs = std::filesystem;

std::string CompleteLogOf(const std::string& log, const std::string& world_hash) {
  std::vector<fs::path> parts = {log};
  const fs::path folder = fs::absolute(log).parent_path();
  const std::string later = fs::path(log).stem().string() + ".from-";
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const fs::path& path = entry.path();
    if (path.extension() == ".h5" && path.filename().string().starts_with(later)) {
      parts.push_back(path);
    }
  }
  for (const fs::path& part : parts) {
    try {
      if (!fs::exists(part)) continue;
      const auto head = analysis::ReadRunLogHead(part.string());
      const bool complete = head.status == analysis::Name(analysis::RunStatus::kComplete);
      if (complete && head.world_hash == world_hash) return part.string();
    } catch (const std::exception&) {
      // No log, or a damaged one: it says nothing.
    }
  }
  return "";
}

}  // namespace spes::app
