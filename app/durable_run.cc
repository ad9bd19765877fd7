#include "app/durable_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

#include "app/random_number.h"
#include "trainer/checkpoint/node_store.h"

namespace spes::app {

namespace {

// A folder that cannot be used, or is in use, before anything has begun is the user's to mend.
template <class F>
auto AtStart(F open) {
  try {
    return open();
  } catch (const std::runtime_error& error) {
    throw std::invalid_argument(error.what());
  }
}

}  // namespace

std::string LogPath(const scenarios::Scenario& scenario) {
  if (!scenario.output.log.empty()) return scenario.output.log;
  return (std::filesystem::path("results") / "runs" / (scenario.name + ".h5")).string();
}

std::string JournalFolder(const scenarios::Scenario& scenario) {
  if (!scenario.output.journal.empty()) return scenario.output.journal;
  if (scenario.transport.kind == scenarios::TransportKind::kSim) return {};
  return std::filesystem::path(LogPath(scenario)).replace_extension(".journal").string();
}

OpenedJournal OpenJournal(const scenarios::Scenario& scenario, const std::string& folder,
                          const std::string& scenario_hash,
                          const std::shared_ptr<const trainer::BlockTable>& table, bool go_on,
                          std::vector<std::string>& warnings) {
  OpenedJournal opened;
  opened.durability.run = RandomNumber();
  opened.durability.scenario_hash = scenario_hash;
  if (folder.empty()) return opened;
  opened.durability.nodes.folder = folder;
  opened.journal = AtStart([&] {
    return std::make_unique<trainer::Journal>(
        (std::filesystem::path(folder) / "coordinator").string(),
        trainer::Retention{scenario.output.journal_last, scenario.output.journal_every});
  });
  const std::vector<std::int32_t> rounds = opened.journal->Rounds();
  if (rounds.empty()) return opened;
  if (!go_on) {
    throw std::invalid_argument(
        fmt::format("{}: holds a run up to round {}; --resume goes on with it, or remove it, or "
                    "name another folder with output.journal",
                    folder, rounds.front()));
  }
  opened.durability.resume = opened.journal->Newest(table, warnings);
  if (!opened.durability.resume) {
    throw std::invalid_argument(
        fmt::format("{}: holds a run of which no state is whole; remove it to begin anew", folder));
  }
  if (opened.durability.resume->scenario_hash != scenario_hash) {
    throw std::invalid_argument(
        fmt::format("{}: holds a run of another scenario; name another folder with output.journal, "
                    "or remove it",
                    folder));
  }
  opened.durability.run = opened.durability.resume->run;
  return opened;
}

std::vector<int> NodesKeptIn(const std::string& folder) {
  namespace fs = std::filesystem;
  constexpr std::string_view kBegin = "node-";
  std::vector<int> nodes;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kBegin)) continue;
    int node = -1;
    const char* end = name.data() + name.size();
    const auto read = std::from_chars(name.data() + kBegin.size(), end, node);
    if (read.ec != std::errc() || read.ptr != end || node < 0) continue;
    for (const auto& file : fs::directory_iterator(entry.path(), ignored)) {
      if (file.path().extension() != ".state") continue;
      nodes.push_back(node);
      break;
    }
  }
  std::sort(nodes.begin(), nodes.end());
  return nodes;
}

std::string NodeFolder(const std::string& folder, int node) {
  return (std::filesystem::path(folder) / fmt::format("node-{}", node)).string();
}

std::unique_ptr<trainer::PeerStore> OpenNodeStore(const NodeStates& states, int node) {
  auto disk = AtStart([&] {
    auto store = std::make_unique<trainer::NodeStore>(NodeFolder(states.folder, node), states.warn);
    if (states.newest) store->RemoveAfter(*states.newest);
    return store;
  });
  if (states.hold_back == nullptr) return disk;
  return std::make_unique<HeldBackStore>(std::move(disk), *states.hold_back);
}

}  // namespace spes::app
