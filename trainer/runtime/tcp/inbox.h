// The receiving half of a session: what has arrived, and where what comes belongs. No sockets.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/runtime/tcp/chunk_set.h"
#include "trainer/runtime/tcp/link.h"
#include "trainer/runtime/tcp/outbox.h"
#include "trainer/runtime/tcp/pieces.h"
#include "trainer/wire/message_codec.h"

namespace spes::trainer {

// See link.h. Everything throws WireError on what no Outbox does: the session is over then.
class Inbox {
 public:
  // Called once for each transfer: where its values are to lie; may be empty.
  using Memory = std::function<Allocate()>;

  // `chunk_bytes`: the sender's.
  Inbox(std::shared_ptr<const BlockTable> table, WireLimits limits, std::int64_t chunk_bytes,
        Memory memory);

  // Of a kMessage or kBegin frame. The message, where it is whole and has not been had before.
  std::optional<Message> OnMessage(std::uint64_t number, std::string_view head);
  std::optional<Message> OnBegin(std::uint64_t number, std::string_view head);

  // Where a chunk belongs that begins to arrive on `connection`.
  struct Place {
    enum class Kind {
      kWanted,  // into `pieces`
      kHad,     // nowhere
      kEarly,   // ask again once its head has come
    } kind = Kind::kHad;
    std::uint32_t chunk = 0;
    std::vector<std::span<std::byte>> pieces;
    // The connection on which it has begun to arrive before. Its sender has given it up: what still
    // comes there must not be written any more.
    std::optional<int> instead_of;
  };
  Place Find(std::uint64_t transfer, std::int64_t offset, std::int64_t bytes, int connection);

  // All of a chunk that was wanted is in its place and good. The message, where that was the last.
  std::optional<Message> OnChunk(std::uint32_t chunk);

  void OnConnectionLost(int connection);

  Arrived state() const;

  // Of the payload of the transfer under way; 0: none is.
  std::int64_t payload_bytes() const { return transfer_ ? transfer_->grid.payload_bytes : 0; }
  std::int64_t received_bytes() const { return transfer_ ? transfer_->bytes : 0; }
  // What the last message with parameters was that was handed out.
  const TransferInfo& last_transfer() const { return last_; }
  // The rest of the transfer under way will not come: what it would have been.
  std::optional<TransferInfo> Abandon();

 private:
  static constexpr int kMissing = -1, kHere = -2;
  struct Transfer {
    std::size_t head_bytes;
    IncomingMessage message;
    Pieces<std::byte> payload;
    ChunkGrid grid;
    std::vector<int> holder;  // [chunk]: the connection that brings it, kMissing or kHere
    ChunkSet here = {};
    std::uint32_t missing = 0;
    std::int64_t bytes = 0;  // here
  };

  bool IsNext(std::uint64_t number);
  Message Finish();

  std::shared_ptr<const BlockTable> table_;
  WireLimits limits_;
  std::int64_t chunk_bytes_;
  Memory memory_;
  std::uint64_t received_ = 0;  // all messages up to this number
  std::uint64_t last_begin_ = 0;
  std::optional<Transfer> transfer_;  // nothing: that of `last_begin_` is complete
  TransferInfo last_;
};

}  // namespace spes::trainer
