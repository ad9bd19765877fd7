// Certificates and a token for a small group that knows nobody else to sign them.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace spes::trainer {

struct KeysConfig {
  std::string folder;              // made where it is absent
  std::vector<std::string> hosts;  // names and addresses that the coordinator is dialled by
  int nodes = 0;                   // one certificate for each
  int days = 365;                  // that all are valid
  std::chrono::system_clock::time_point from = std::chrono::system_clock::now();
};

// Writes into the folder, and returns their paths:
//
//   authority.pem                        signed both kinds below
//   coordinator.pem, coordinator-key.pem
//   node-K.pem, node-K-key.pem           for each node, with the common name "spes-sim node K";
//   each
//                                        lets in that node only
//   token                                for groups without certificates of nodes
//
// The key that signed them is not kept: the group cannot grow, and nobody can forge its members.
// Keys and token can be read by this user only. P-256 keys, signed with SHA-256. Throws
// std::invalid_argument, one line, on settings that make no sense or where one of the files exists
// already, and std::runtime_error when one cannot be written.
std::vector<std::string> MakeKeys(const KeysConfig& config);

// Throws std::invalid_argument, one line, when the file holds no certificate, one that has expired
// at `now` or is not valid yet; returns a line when it expires within 14 days, or nothing.
std::string CheckDates(const std::string& certificate, std::chrono::system_clock::time_point now =
                                                           std::chrono::system_clock::now());

// Throws std::invalid_argument, one line, where others than its user and group may read the file of
// a private key; nothing where it is absent.
void CheckPrivate(const std::string& key);

// The file's only line. Throws std::invalid_argument, one line, where it cannot be read, has
// fewer than 16 characters, or where others may read it.
std::string ReadToken(const std::string& path);

}  // namespace spes::trainer
