// Certificates and a token for a small group that knows nobody else to sign them.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace spes::trainer {

struct KeysConfig {
  std::string folder;  // made where it is absent
  // Names and addresses that the coordinator is dialled by; needed where its certificate is to be
  // made.
  std::vector<std::string> hosts;
  int nodes = 0;   // one certificate for each
  int days = 365;  // that those of members are valid; the authority's is for 10 years at least
  std::chrono::system_clock::time_point from = std::chrono::system_clock::now();
};

// Paths.
struct Keys {
  std::vector<std::string> made, kept;
  std::vector<std::string> warnings;  // a line for each certificate that was kept and should not be
};

// Sees to it that the folder holds
//
//   authority.pem, authority-key.pem     which sign both kinds below
//   coordinator.pem, coordinator-key.pem
//   node-K.pem, node-K-key.pem           for each node, with the common name "spes-sim node K";
//                                        each lets in that node only
//   token                                for groups without certificates of nodes
//
// What is there is kept, what is missing is made: whoever has the authority's key can let in
// further members, and nobody else can. P-256 keys, signed with SHA-256, valid from the day before
// `from`, for clocks that are behind. Keys and token can be read by this user only. Where one file
// cannot be written, none of this call is left.
//
// Throws std::invalid_argument, one line, on settings that make no sense, where one half of a pair
// is missing, where something is to be made and the authority's key is absent, others may use it,
// or its certificate would not outlive the new ones, and where the coordinator's certificate is
// there but not for all `hosts`; std::runtime_error when a file cannot be written.
Keys MakeKeys(const KeysConfig& config);

}  // namespace spes::trainer
