// What one peer has of the published world, as the coordinator knows.
#pragma once

#include <vector>

#include "trainer/protocol/messages.h"
#include "trainer/sync/world.h"

namespace spes::trainer {

// A block's code, which takes the value of version `from` to the published one.
struct PublishedCode {
  Version from = 0;
  SharedCode code;  // null: there is none
};

// The published world with all that may be sent in place of its values.
struct Publication {
  World world;
  std::vector<PublishedCode> codes;    // [block]
  std::vector<SharedMoments> moments;  // [block]: for whoever trains it from now on; may be null
  bool codes_need_base = false;
};

class HeldBlocks {
 public:
  static constexpr Version kNone = -1;

  HeldBlocks() = default;
  // `version`: of all `blocks` values that the peer has; kNone: it has none.
  HeldBlocks(std::size_t blocks, Version version) : held_(blocks, version), base_(held_) {}

  // [block]: versions as the peer says; those above `newest` cannot be and count as none.
  HeldBlocks(std::vector<Version> held, Version newest);

  // The peer has trained these: its values are not the published ones any more.
  void Trained(const std::vector<BlockId>& ids);

  // What the peer offered of this block was published as version `version`, to the bit.
  void Adopted(BlockId id, Version version);

  // The blocks whose published value the peer does not hold; from now on it does. Those that it
  // trains, by `trains` (ascending), with moments where there are any.
  std::vector<SentBlock> TakeMissing(const Publication& published,
                                     const std::vector<BlockId>& trains);

 private:
  std::vector<Version> held_;  // [block]: of the value that the peer goes on with
  std::vector<Version> base_;  // [block]: the last published value that it knows
};

}  // namespace spes::trainer
