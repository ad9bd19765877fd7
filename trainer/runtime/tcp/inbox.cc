#include "trainer/runtime/tcp/inbox.h"

#include <utility>

namespace spes::trainer {

Inbox::Inbox(std::shared_ptr<const BlockTable> table, WireLimits limits, std::int64_t chunk_bytes,
             Memory memory)
    : table_(std::move(table)),
      limits_(std::move(limits)),
      chunk_bytes_(chunk_bytes),
      memory_(std::move(memory)) {}

// False for one that has been had.
bool Inbox::IsNext(std::uint64_t number) {
  if (number <= received_) return false;
  if (number != received_ + 1) throw WireError("a message is missing");
  return true;
}

std::optional<Message> Inbox::OnMessage(std::uint64_t number, std::string_view head) {
  if (!IsNext(number)) return std::nullopt;
  const Allocate none = [](std::int64_t) -> Buffer {
    throw WireError("a message with parameters that comes as one without");
  };
  IncomingMessage message(head, table_, limits_, none);
  if (message.payload_bytes() > 0) {
    throw WireError("a message with parameters that comes as one without");
  }
  received_ = number;
  return std::move(message).Finish();
}

std::optional<Message> Inbox::OnBegin(std::uint64_t number, std::string_view head) {
  if (!IsNext(number)) return std::nullopt;
  if (transfer_) throw WireError("a second transfer while one is under way");
  IncomingMessage message(head, table_, limits_, memory_ ? memory_() : Allocate());
  const ChunkGrid grid{message.payload_bytes(), chunk_bytes_};
  Pieces<std::byte> payload(message.payload());
  transfer_.emplace(Transfer{head.size(),
                             std::move(message),
                             std::move(payload),
                             grid,
                             std::vector<int>(grid.count(), kMissing),
                             {},
                             grid.count(),
                             0});
  received_ = last_begin_ = number;
  if (transfer_->missing > 0) return std::nullopt;
  return Finish();
}

Inbox::Place Inbox::Find(std::uint64_t transfer, std::int64_t offset, std::int64_t bytes,
                         int connection) {
  Place place;
  if (transfer > last_begin_) {
    place.kind = Place::Kind::kEarly;
    return place;
  }
  if (transfer < last_begin_ || !transfer_) return place;
  const ChunkGrid& grid = transfer_->grid;
  if (offset < 0 || offset >= grid.payload_bytes || offset % grid.chunk_bytes != 0 ||
      bytes != grid.bytes(static_cast<std::uint32_t>(offset / grid.chunk_bytes))) {
    throw WireError("a chunk that is none of its transfer");
  }
  place.chunk = static_cast<std::uint32_t>(offset / grid.chunk_bytes);
  int& holder = transfer_->holder[place.chunk];
  if (holder == kHere) return place;
  if (holder != kMissing) place.instead_of = holder;
  holder = connection;
  place.kind = Place::Kind::kWanted;
  place.pieces = transfer_->payload.Slice(offset, bytes);
  return place;
}

std::optional<Message> Inbox::OnChunk(std::uint32_t chunk) {
  transfer_->holder[chunk] = kHere;
  transfer_->here.Add({chunk, chunk + 1}, [](std::uint32_t) {});
  transfer_->bytes += transfer_->grid.bytes(chunk);
  if (--transfer_->missing > 0) return std::nullopt;
  return Finish();
}

Message Inbox::Finish() {
  Message message = std::move(transfer_->message).Finish();
  last_ = {last_begin_, std::string(Name(message)), RoundOf(message), transfer_->grid.payload_bytes,
           static_cast<std::int64_t>(kFrameHeaderBytes + transfer_->head_bytes) +
               transfer_->grid.payload_bytes};
  transfer_.reset();
  return message;
}

void Inbox::OnConnectionLost(int connection) {
  if (!transfer_) return;
  for (int& holder : transfer_->holder) {
    if (holder == connection) holder = kMissing;
  }
}

Arrived Inbox::state() const {
  Arrived state;
  state.message = received_;
  state.transfer = last_begin_;
  state.complete = last_begin_ > 0 && !transfer_;
  if (!transfer_) return state;
  state.chunks = transfer_->here.Ranges(kMaxRanges);
  return state;
}

std::optional<TransferInfo> Inbox::Abandon() {
  if (!transfer_) return std::nullopt;
  Finish();
  return last_;
}

}  // namespace spes::trainer
