// What may include what.
#pragma once

#include <string>
#include <vector>

#include "tests/architecture/source_tree.h"

namespace spes::architecture {

inline constexpr int kLongestFile = 450;  // lines

// The rooms that hold C++.
std::vector<std::string> Rooms();

// One line for each offence, "path:line: what is wrong". The rules:
// - sim uses nothing of ours, analysis neither; trainer uses sim and the records and recorder of
//   analysis; scenarios uses all three, app all four, tests everything;
// - of sim/ns3 only packet_network.h is for others;
// - each third-party library has its place (see rules.cc); one that is not listed is an offence;
// - no source file sees LibTorch together with ns-3 (both define LOG and CHECK), fmt or spdlog
//   (LibTorch brings another fmt), through headers of ours neither;
// - quoted includes are paths from the root, of files that exist;
// - no file is longer than kLongestFile.
std::vector<std::string> Offences(const SourceTree& tree);

}  // namespace spes::architecture
