// What a node keeps on disk.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trainer/checkpoint/round_folder.h"
#include "trainer/protocol/peer_store.h"

namespace spes::trainer {

// One file per state, the two newest rounds, in a folder of the node's own. The file: a line that
// says what it is, the round (4 bytes), the state's length (8), the state, and XXH3-64 of all
// before; little-endian. What holds at whatever moment a write is interrupted is said in
// round_folder.h: among it, that writing a round removes the states of later ones first.
class NodeStore final : public PeerStore {
 public:
  // Creates the folder where it is not there; one store per folder at a time, over all processes.
  // `warn` is called with a line, from Read, for each state that is left out because it is damaged.
  // `files` must outlive the store. Throws std::runtime_error, one line, where the folder cannot be
  // used or is in use.
  explicit NodeStore(std::string folder, std::function<void(const std::string&)> warn,
                     FileSystem& files = FileSystem::Real());

  void Write(std::int32_t round, const StateBytes& state) override;
  // Removes the states of later rounds.
  void RemoveAfter(std::int32_t round) { folder_.RemoveAfter(round); }
  std::vector<std::int32_t> Rounds() const override;
  std::optional<std::string> Read(std::int32_t round) const override;

 private:
  RoundFolder folder_;
  std::function<void(const std::string&)> warn_;
};

}  // namespace spes::trainer
