// Where files are looked for.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace spes::scenarios {

// The scenarios that came with the program: $SPES_SCENARIOS, or share/spes-sim/scenarios of the
// installation, or the source tree's.
std::filesystem::path InstalledScenarios();

// Where ./dev setup keeps what it fetches: $SPES_DEPS, or ~/.cache/spes-sim.
std::filesystem::path DependencyFolder();

// The first of the folders in which the relative `path` is a regular file, or the absolute path
// itself; absolute. Nothing when there is none.
std::optional<std::string> FindFile(const std::string& path,
                                    const std::vector<std::filesystem::path>& folders);

}  // namespace spes::scenarios
