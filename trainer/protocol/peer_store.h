// Where a peer keeps what survives it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/state_bytes.h"

namespace spes::trainer {

// States by the round after whose training they were taken; 0: before the first. Called from one
// thread at a time, not always the same one.
class PeerStore {
 public:
  virtual ~PeerStore() = default;

  // Durable once this returns; whatever is older than the one before it may go. Throws
  // std::runtime_error, one line, when it cannot be written; what was there stays then.
  virtual void Write(std::int32_t round, const StateBytes& state) = 0;

  // The rounds of which there are states, newest first, whether whole or damaged.
  virtual std::vector<std::int32_t> Rounds() const = 0;

  // Nothing where there is none, or it is damaged.
  virtual std::optional<std::string> Read(std::int32_t round) const = 0;
};

}  // namespace spes::trainer
