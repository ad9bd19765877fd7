#include "trainer/protocol/saved_peer.h"

#include <cstring>
#include <stdexcept>
#include <utility>

#include "trainer/node_state.h"
#include "trainer/wire/message_codec.h"

namespace spes::trainer {

namespace {

void Put(StateWriter& out, std::string_view text) {
  out.Bytes(std::as_bytes(std::span(text.data(), text.size())));
}

template <class Buffers>
void PutBuffers(StateWriter& out, const Buffers& buffers) {
  out.Number<std::uint64_t>(buffers.size());
  for (const auto& [id, buffer] : buffers) {
    out.Number(id);
    out.Bytes(buffer->template as<std::byte>(), buffer);
  }
}

// A message without values is all head.
void PutMessage(StateWriter& out, Message message, const BlockTable& table) {
  Put(out, EncodeMessage(std::move(message), table).head);
}

template <class M>
M TakeMessage(StateReader& in, const std::shared_ptr<const BlockTable>& table) {
  try {
    return std::get<M>(IncomingMessage(in.Bytes(), table, {}).Finish());
  } catch (const WireError& error) {
    throw std::invalid_argument(std::string("saved state of a peer: ") + error.what());
  } catch (const std::bad_variant_access&) {
    throw std::invalid_argument("saved state of a peer: it holds another message");
  }
}

BlockId TakeId(StateReader& in, const BlockTable& table) {
  const auto id = in.Number<BlockId>();
  if (id < 0 || id >= table.size()) {
    throw std::invalid_argument("saved state of a peer: it names a block that is not there");
  }
  return id;
}

std::shared_ptr<Buffer> TakeBuffer(StateReader& in, const BlockTable& table, BlockId id) {
  const std::string_view bytes = in.Bytes();
  auto buffer = std::make_shared<Buffer>(table.Allocate(id));
  if (static_cast<std::int64_t>(bytes.size()) != buffer->bytes()) {
    throw std::invalid_argument("saved state of a peer: a block is of another size");
  }
  std::memcpy(buffer->data(), bytes.data(), bytes.size());
  return buffer;
}

template <class Buffers>
void TakeBuffers(StateReader& in, const BlockTable& table, Buffers& buffers) {
  for (auto left = in.Number<std::uint64_t>(); left > 0; --left) {
    const BlockId id = TakeId(in, table);
    buffers[id] = TakeBuffer(in, table, id);
  }
}

}  // namespace

StateBytes WriteSavedPeer(const SavedPeer& saved, const StateBytes& node, const BlockTable& table) {
  StateWriter out;
  Join join{saved.scenario_hash, "", 0, saved.run, saved.round, saved.held, saved.trains};
  PutMessage(out, std::move(join), table);
  PutMessage(out, Admit{{}, saved.order, saved.run}, table);
  Offer offer = saved.offer;
  const std::vector<OfferedBlock> blocks = std::exchange(offer.blocks, {});
  PutMessage(out, std::move(offer), table);
  out.Number<std::uint64_t>(blocks.size());
  for (const OfferedBlock& block : blocks) {
    out.Number(block.id);
    out.Number(block.checksum);
  }
  PutBuffers(out, saved.residuals);
  PutBuffers(out, saved.base);
  PutBuffers(out, saved.refers);
  out.Bytes(node);
  return out.Finish();
}

SavedPeer ReadSavedPeer(std::string_view text, const std::shared_ptr<const BlockTable>& table) {
  StateReader in(text);
  SavedPeer saved;
  auto join = TakeMessage<Join>(in, table);
  saved.scenario_hash = std::move(join.scenario_hash);
  saved.run = join.run;
  saved.round = join.round;
  saved.held = std::move(join.held);
  saved.trains = std::move(join.trains);
  saved.order = TakeMessage<Admit>(in, table).order;
  saved.offer = TakeMessage<Offer>(in, table);
  for (auto left = in.Number<std::uint64_t>(); left > 0; --left) {
    OfferedBlock block;
    block.id = TakeId(in, *table);
    block.checksum = in.Number<std::uint64_t>();
    saved.offer.blocks.push_back(std::move(block));
  }
  TakeBuffers(in, *table, saved.residuals);
  TakeBuffers(in, *table, saved.base);
  TakeBuffers(in, *table, saved.refers);
  saved.node = in.Bytes();
  in.ExpectEnd();
  if (saved.held.size() != static_cast<std::size_t>(table->size())) {
    throw std::invalid_argument("saved state of a peer: it is of another model");
  }
  for (analysis::StepRecord& step : saved.offer.steps) step.round = saved.round;
  return saved;
}

}  // namespace spes::trainer
