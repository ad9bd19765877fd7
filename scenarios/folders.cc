#include "scenarios/folders.h"

#include <cstdlib>
#include <system_error>

namespace spes::scenarios {

namespace fs = std::filesystem;

fs::path InstalledScenarios() {
  if (const char* set = std::getenv("SPES_SCENARIOS"); set != nullptr && *set != '\0') return set;
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  const fs::path installed = program.parent_path() / SPES_SCENARIOS_INSTALLED;
  if (fs::is_directory(installed, ignored)) return installed.lexically_normal();
  return SPES_SCENARIOS_SOURCE;
}

fs::path DependencyFolder() {
  if (const char* set = std::getenv("SPES_DEPS"); set != nullptr && *set != '\0') return set;
  const char* home = std::getenv("HOME");
  return fs::path(home != nullptr ? home : ".") / ".cache" / "spes-sim";
}

std::optional<std::string> FindFile(const std::string& path, const std::vector<fs::path>& folders) {
  for (const fs::path& folder : folders) {
    std::error_code error;
    const fs::path whole = fs::absolute(folder / path, error).lexically_normal();
    if (!error && fs::exists(whole, error) && !fs::is_directory(whole, error)) {
      return whole.string();
    }
  }
  return std::nullopt;
}

}  // namespace spes::scenarios
