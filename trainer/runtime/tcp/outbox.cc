#include "trainer/runtime/tcp/outbox.h"

#include <utility>

namespace spes::trainer {

void Outbox::Send(OutgoingMessage message, std::function<void()> delivered) {
  if (!IsBulk(message.message)) {
    return Queue(FrameType::kMessage, std::move(message.head), std::move(delivered));
  }
  waiting_.push_back(
      {std::make_shared<const OutgoingMessage>(std::move(message)), std::move(delivered)});
  Begin();
}

void Outbox::Queue(FrameType type, std::string payload, std::function<void()> delivered) {
  unacknowledged_.push_back(
      {{type, ++last_number_, std::make_shared<const std::string>(std::move(payload))},
       std::move(delivered)});
}

// The next transfer, where none is under way.
void Outbox::Begin() {
  if (transfer_ || waiting_.empty()) return;
  Waiting next = std::move(waiting_.front());
  waiting_.pop_front();
  const OutgoingMessage& message = *next.message;
  Queue(FrameType::kBegin, message.head, {});
  TransferInfo info{
      last_number_, std::string(Name(message.message)), RoundOf(message.message),
      message.payload_bytes,
      static_cast<std::int64_t>(kFrameHeaderBytes + message.head.size()) + message.payload_bytes};
  const ChunkGrid grid{message.payload_bytes, chunk_bytes_};
  transfer_.emplace(Transfer{std::move(info),
                             next.message,
                             std::move(next.delivered),
                             Pieces<const std::byte>(message.payload),
                             grid,
                             std::vector<int>(grid.count(), kToSend),
                             {},
                             {},
                             false,
                             0});
  for (std::uint32_t i = 0; i < grid.count(); ++i) {
    transfer_->to_send.insert(transfer_->to_send.end(), i);
  }
}

std::optional<Outbox::Frame> Outbox::NextFrame() {
  if (written_ == unacknowledged_.size()) return std::nullopt;
  const Frame& frame = unacknowledged_[written_++].frame;
  if (transfer_ && frame.number == transfer_->info.number) transfer_->begun = true;
  return frame;
}

void Outbox::OnControl() {
  written_ = 0;
  told_ = false;
}

bool Outbox::HasChunk() const {
  return told_ && transfer_ && transfer_->begun && !transfer_->to_send.empty();
}

std::optional<Outbox::Chunk> Outbox::NextChunk(int connection) {
  if (!HasChunk()) return std::nullopt;
  Transfer& t = *transfer_;
  const std::uint32_t chunk = *t.to_send.begin();
  t.to_send.erase(t.to_send.begin());
  t.holder[chunk] = connection;
  return Chunk{t.info.number, t.grid.offset(chunk),
               t.payload.Slice(t.grid.offset(chunk), t.grid.bytes(chunk)), t.message};
}

void Outbox::OnConnectionLost(int connection) {
  if (!transfer_) return;
  for (std::uint32_t i = 0; i < transfer_->holder.size(); ++i) {
    if (transfer_->holder[i] != connection) continue;
    transfer_->holder[i] = kToSend;
    transfer_->to_send.insert(i);
  }
}

void Outbox::Mark(Transfer& transfer, std::uint32_t chunk) {
  transfer.holder[chunk] = kArrived;
  transfer.to_send.erase(chunk);
  transfer.arrived_bytes += transfer.grid.bytes(chunk);
}

Outbox::Progress Outbox::OnArrived(const Arrived& m) {
  if (m.message > last_number_ || m.transfer > m.message) {
    throw WireError("an acknowledgement of what was never sent");
  }
  told_ = true;
  Progress progress;
  while (!unacknowledged_.empty() && unacknowledged_.front().frame.number <= m.message) {
    progress.any = true;
    if (auto& f = unacknowledged_.front().delivered) progress.delivered.push_back(std::move(f));
    unacknowledged_.pop_front();
    if (written_ > 0) --written_;
  }
  if (!transfer_ || m.transfer < transfer_->info.number) return progress;
  if (m.transfer > transfer_->info.number) {
    throw WireError("an acknowledgement of what was never sent");
  }
  const std::int64_t before = transfer_->arrived_bytes;
  for (const ChunkRange& range : m.chunks) {
    if (range.end > transfer_->grid.count()) {
      throw WireError("an acknowledgement of what was never sent");
    }
    transfer_->arrived.Add(range, [&](std::uint32_t chunk) { Mark(*transfer_, chunk); });
  }
  progress.any = progress.any || m.complete || transfer_->arrived_bytes > before;
  if (!m.complete) return progress;
  if (transfer_->delivered) progress.delivered.push_back(std::move(transfer_->delivered));
  progress.finished = std::move(transfer_->info);
  transfer_.reset();
  Begin();
  return progress;
}

std::int64_t Outbox::acknowledged_bytes() const { return transfer_ ? transfer_->arrived_bytes : 0; }

}  // namespace spes::trainer
