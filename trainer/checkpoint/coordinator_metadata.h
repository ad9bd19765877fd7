// What a coordinator's file says of its state besides the values of tensors.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trainer/protocol/coordinator_state.h"

namespace spes::trainer {

// Which buffers a state has besides the world's.
struct Outline {
  std::vector<std::optional<std::int64_t>> moments, adam;  // [block]: updates; nothing: no moments
  std::vector<bool> velocity;                              // [block]
  std::vector<BlockId> residuals;
};

Outline OutlineOf(const CoordinatorState& state);

// Throws std::invalid_argument with what is wrong, as "has …" or "is …", unless all counts, ids and
// numbers can be those of a state of its world's table. The buffers need not be there yet.
void CheckFields(const CoordinatorState& state, const Outline& has);

// Numbers as decimal text, lists as JSON.
std::map<std::string, std::string> ToMetadata(const CoordinatorState& state, const Outline& has);

// Fills all fields of `state` but buffers and what is of type double; of its world the versions.
// Throws std::invalid_argument with what is wrong, as "has …" or "is …".
Outline FromMetadata(const std::map<std::string, std::string>& metadata, CoordinatorState& state);

}  // namespace spes::trainer
