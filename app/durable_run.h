// The folder in which a run outlives its processes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/engine.h"
#include "scenarios/scenario.h"
#include "trainer/checkpoint/journal.h"
#include "trainer/protocol/peer_store.h"

namespace spes::app {

// The run's log, where the scenario names none too.
std::string LogPath(const scenarios::Scenario& scenario);

// Where its states go; empty: nowhere.
std::string JournalFolder(const scenarios::Scenario& scenario);

// The coordinator's part: null where `folder` is empty. It is the caller's to write it: nothing
// that can be taken up is left behind before the run begins. A line for each damaged state that is
// left out goes to `warnings`.
struct OpenedJournal {
  std::unique_ptr<trainer::Journal> journal;
  Durability durability;
};
// `go_on`: whether a run that is there may be taken up. Throws std::invalid_argument, one line,
// when the folder holds a run and `go_on` is false, or one of another scenario; std::runtime_error
// when it cannot be used.
OpenedJournal OpenJournal(const scenarios::Scenario& scenario, const std::string& folder,
                          const std::string& scenario_hash,
                          const std::shared_ptr<const trainer::BlockTable>& table, bool go_on,
                          std::vector<std::string>& warnings);

// The nodes of which the folder holds a state, ascending; none where it is not there.
std::vector<int> NodesKeptIn(const std::string& folder);

// Where node `node` keeps its states, of a run that keeps things in `folder`.
std::string NodeFolder(const std::string& folder, int node);

// What node `node` keeps; the folder is not empty.
std::unique_ptr<trainer::PeerStore> OpenNodeStore(const NodeStates& states, int node);

}  // namespace spes::app
