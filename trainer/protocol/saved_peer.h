// What a peer must still know when its process begins anew: its state after the training of a
// round, before anyone has been told.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/protocol/messages.h"
#include "trainer/state_bytes.h"
#include "trainer/sync/residuals.h"

namespace spes::trainer {

struct SavedPeer {
  std::string scenario_hash;
  std::uint64_t run = 0;   // 0: has taken part in none yet
  std::int32_t round = 0;  // trained; 0: none
  std::vector<BlockId> trains;
  std::vector<Version> held;  // [block], as in Join
  RoundOrder order;           // of the round
  Offer offer;  // of the round, its blocks without values: the ids and checksums count
  Residuals::Buffers residuals;
  // Published values that what it offers next is coded from: of the blocks that it trains; empty
  // where the codec needs none.
  std::map<BlockId, SharedBuffer> base;
  // Published values that the steps ahead are trained from: of the blocks that it does not train;
  // empty where the order has no such steps.
  std::map<BlockId, SharedBuffer> refers;
  std::string_view node;  // Node::Save, within the text that was read
};

// `node`: Node::Save, in the place of that of `saved`. The values stay where they are.
StateBytes WriteSavedPeer(const SavedPeer& saved, const StateBytes& node, const BlockTable& table);

// Throws std::invalid_argument, one line, on a text that is no such state for this table; `node` is
// not looked into, and needs the text.
SavedPeer ReadSavedPeer(std::string_view text, const std::shared_ptr<const BlockTable>& table);

}  // namespace spes::trainer
