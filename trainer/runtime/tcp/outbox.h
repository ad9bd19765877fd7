// The sending half of a session: what is to be sent, and what of it has arrived. No sockets.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "trainer/runtime/tcp/chunk_set.h"
#include "trainer/runtime/tcp/link.h"
#include "trainer/runtime/tcp/pieces.h"
#include "trainer/wire/message_codec.h"

namespace spes::trainer {

// What a transfer carries, for whoever records it.
struct TransferInfo {
  std::uint64_t number = 0;
  std::string message;  // its kind
  std::int32_t round = 0;
  std::int64_t payload_bytes = 0;
  std::int64_t bytes = 0;  // frame header, head and payload, as WireBytes has it
};

// See link.h. Connections are numbers, never used twice.
class Outbox {
 public:
  explicit Outbox(std::int64_t chunk_bytes) : chunk_bytes_(chunk_bytes) {}

  // `delivered` may be empty.
  void Send(OutgoingMessage message, std::function<void()> delivered);

  // The control connection: what to write next; nothing when all is written that can be.
  struct Frame {
    FrameType type;
    std::uint64_t number;
    std::shared_ptr<const std::string> payload;
  };
  std::optional<Frame> NextFrame();

  // A new control connection: everything that is not acknowledged is to be written again, chunks
  // once it has been heard what has arrived.
  void OnControl();

  // A connection for parameters asks for something to write. `message` keeps the pieces alive.
  struct Chunk {
    std::uint64_t transfer;
    std::int64_t offset;
    std::vector<std::span<const std::byte>> pieces;
    std::shared_ptr<const OutgoingMessage> message;
  };
  std::optional<Chunk> NextChunk(int connection);
  bool HasChunk() const;

  // What this connection has been given and was not acknowledged is for another.
  void OnConnectionLost(int connection);

  // What the other side has. Throws WireError where that cannot be.
  struct Progress {
    bool any = false;                              // more than before
    std::vector<std::function<void()>> delivered;  // to be called, in order
    std::optional<TransferInfo> finished;
  };
  Progress OnArrived(const Arrived& m);

  // The transfer under way; null: none.
  const TransferInfo* transfer() const { return transfer_ ? &transfer_->info : nullptr; }
  std::int64_t acknowledged_bytes() const;  // of its payload
  // More waits than a protocol that is answered ever leaves behind.
  bool full() const {
    return waiting_.size() > kMostWaiting || unacknowledged_.size() > kMostUnacknowledged;
  }
  bool idle() const { return unacknowledged_.empty() && !transfer_ && waiting_.empty(); }

 private:
  struct Unacknowledged {
    Frame frame;
    std::function<void()> delivered;
  };
  struct Waiting {
    std::shared_ptr<const OutgoingMessage> message;
    std::function<void()> delivered;
  };
  static constexpr std::size_t kMostWaiting = 64, kMostUnacknowledged = 4096;
  static constexpr int kToSend = -1, kArrived = -2;
  struct Transfer {
    TransferInfo info;
    std::shared_ptr<const OutgoingMessage> message;
    std::function<void()> delivered;
    Pieces<const std::byte> payload;
    ChunkGrid grid;
    std::vector<int> holder;  // [chunk]: the connection that has it, kToSend or kArrived
    std::set<std::uint32_t> to_send;
    ChunkSet arrived = {};
    bool begun = false;  // its head has been written
    std::int64_t arrived_bytes = 0;
  };

  void Queue(FrameType type, std::string payload, std::function<void()> delivered);
  void Begin();
  void Mark(Transfer& transfer, std::uint32_t chunk);

  std::int64_t chunk_bytes_;
  std::uint64_t last_number_ = 0;
  std::deque<Unacknowledged> unacknowledged_;
  std::size_t written_ = 0;  // of these, on the control connection at hand
  bool told_ = false;        // what has arrived, on that connection
  std::deque<Waiting> waiting_;
  std::optional<Transfer> transfer_;
};

}  // namespace spes::trainer
