#include "trainer/runtime/tcp/connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

namespace spes::trainer {

namespace {

// A payload that is announced takes memory only as it comes.
constexpr std::uint64_t kGrowth = 1 << 20;
constexpr std::size_t kSkipBytes = 64 << 10;
// Then others have their turn.
constexpr std::size_t kTurnBytes = 4 << 20;
constexpr std::chrono::seconds kLinger{2};

// Takes `bytes` off the pieces from `at` on.
template <class Byte>
void Advance(std::vector<std::span<Byte>>& pieces, std::size_t& at, std::size_t bytes) {
  while (bytes > 0) {
    std::span<Byte>& piece = pieces[at];
    const std::size_t taken = std::min(bytes, piece.size());
    piece = piece.subspan(taken);
    bytes -= taken;
    if (piece.empty()) ++at;
  }
}

}  // namespace

void Connection::Owner::OnOpen(Connection&) {}
Inbox::Place Connection::Owner::Find(Connection&, std::uint64_t, std::int64_t, std::int64_t) {
  return {};
}
void Connection::Owner::OnChunk(Connection&, std::uint32_t) {}
void Connection::Owner::Fill(Connection&) {}
void Connection::Owner::OnWireError(Connection& connection, const std::string& why) {
  connection.Close(why);
}

Connection::Connection(asio::io_context& io, std::unique_ptr<Stream> stream,
                       std::shared_ptr<Owner> owner)
    : io_(io), linger_(io), stream_(std::move(stream)), owner_(std::move(owner)) {
  ExpectHeader();
}

void Connection::Start() { Later(&Connection::SetUpTls); }

void Connection::Later(Step step) {
  asio::post(io_, [self = shared_from_this(), step] { self->Run(step); });
}

void Connection::After(Wait wait, Step step) {
  stream_->When(wait, [self = shared_from_this(), step](bool good) {
    if (good) self->Run(step);
  });
}

// What goes wrong with the connection ends it; all other exceptions are the owner's and pass.
void Connection::Run(Step step) {
  if (state_ == State::kClosed) return;
  try {
    (this->*step)();
  } catch (const StreamError& error) {
    Close(error.what(), true, error.permanent());
  } catch (const WireError& error) {
    if (const auto owner = owner_) owner->OnWireError(*this, error.what());
    // It is told why: what it still says is thrown away, until it closes.
    if (state_ == State::kFinishing) Later(&Connection::Read);
  }
}

bool Connection::other_version() const {
  const FrameHeaderBytes ours = EncodeFrameHeader(FrameType::kBeat, 0, {});
  return std::memcmp(ours.data(), header_bytes_.data(), 4) == 0 &&
         std::memcmp(ours.data() + 4, header_bytes_.data() + 4, 2) != 0;
}

void Connection::SetUpTls() {
  if (state_ != State::kTls) return;
  const Wait wait = stream_->Handshake();
  if (wait != Wait::kNothing) return After(wait, &Connection::SetUpTls);
  state_ = State::kOpen;
  Later(&Connection::Read);
  Wake();
  const auto owner = owner_;
  owner->OnOpen(*this);
}

bool Connection::other_speaks_tls() const {
  return !stream_->tls() && header_bytes_[0] == std::byte{0x15};  // an alert
}

// Reading.

void Connection::Expect(std::span<std::byte> into) {
  into_.clear();
  into_at_ = 0;
  if (!into.empty()) into_.push_back(into);
}

void Connection::ExpectHeader() {
  reading_ = Reading::kHeader;
  frame_s_ = 0;
  Expect(header_bytes_);
}

// The next part of a payload that is kept as a text.
void Connection::ExpectMore() {
  const auto more = static_cast<std::size_t>(std::min(rest_, kGrowth));
  const std::size_t before = payload_.size();
  payload_.resize(before + more);
  rest_ -= more;
  Expect(std::as_writable_bytes(std::span(payload_).subspan(before)));
}

void Connection::Read() {
  for (std::size_t turn = 0; turn < kTurnBytes;) {
    if (state_ == State::kFinishing) return Discard();
    if (state_ != State::kOpen || reading_ == Reading::kEarly) return;
    if (paused_) {
      stalled_ = true;
      return;
    }
    if (into_at_ == into_.size()) {
      Complete();
      turn += kFrameHeaderBytes;
      continue;
    }
    const IoResult result = stream_->Read(std::span(into_).subspan(into_at_));
    if (result.wait != Wait::kNothing) return After(result.wait, &Connection::Read);
    Advance(into_, into_at_, result.bytes);
    received_bytes_ += static_cast<std::int64_t>(result.bytes);
    turn += result.bytes;
    silent_s_ = 0;
  }
  Later(&Connection::Read);
}

// What was expected has come.
void Connection::Complete() {
  const auto owner = owner_;
  switch (reading_) {
    case Reading::kHeader:
      return OnHeader();
    case Reading::kPayload: {
      if (rest_ > 0) return ExpectMore();
      const auto bytes = std::as_bytes(std::span(payload_));
      CheckPayload(header_bytes_, std::array{std::span<const std::byte>(bytes)});
      const FrameHeader header = header_;
      const std::string payload = std::exchange(payload_, {});
      ExpectHeader();
      return owner->OnFrame(*this, header, payload);
    }
    case Reading::kOffset:
      return Place();
    case Reading::kChunk: {
      std::vector<std::span<const std::byte>> pieces{offset_};
      pieces.insert(pieces.end(), place_.pieces.begin(), place_.pieces.end());
      CheckPayload(header_bytes_, pieces);
      ExpectHeader();
      return owner->OnChunk(*this, place_.chunk);
    }
    case Reading::kSkip:
      if (rest_ == 0) return ExpectHeader();
      payload_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(rest_, kSkipBytes)));
      rest_ -= payload_.size();
      return Expect(std::as_writable_bytes(std::span(payload_)));
    case Reading::kEarly:
      return;
  }
}

void Connection::OnHeader() {
  // Another version may have other types; whatever the type is, it is looked at first.
  const auto most = owner_->Most(*this, static_cast<FrameType>(header_bytes_[6]));
  header_ = DecodeFrameHeader(header_bytes_, most.value_or(~std::uint64_t{0}));
  if (!most) throw WireError("a frame of a type that has no place here");
  rest_ = header_.length;
  if (header_.type == FrameType::kChunk) {
    if (rest_ < offset_.size()) throw WireError("a chunk that is none of its transfer");
    rest_ -= offset_.size();
    reading_ = Reading::kOffset;
    return Expect(offset_);
  }
  reading_ = Reading::kPayload;
  payload_.clear();
  into_.clear();
  into_at_ = 0;
}

void Connection::Place() {
  std::int64_t offset;
  std::memcpy(&offset, offset_.data(), sizeof(offset));
  const auto owner = owner_;
  place_ = owner->Find(*this, header_.number, offset, static_cast<std::int64_t>(rest_));
  switch (place_.kind) {
    case Inbox::Place::Kind::kEarly:
      reading_ = Reading::kEarly;
      return;
    case Inbox::Place::Kind::kHad:
      reading_ = Reading::kSkip;
      return Expect({});
    case Inbox::Place::Kind::kWanted:
      reading_ = Reading::kChunk;
      into_ = place_.pieces;
      into_at_ = 0;
      return;
  }
}

void Connection::Resume() {
  if (reading_ != Reading::kEarly) return;
  reading_ = Reading::kOffset;  // it is here: Complete looks again
  Later(&Connection::Read);
}

void Connection::Unpause() {
  paused_ = false;
  if (std::exchange(stalled_, false)) Later(&Connection::Read);
}

void Connection::Discard() {
  if (stream_->Discard()) return After(Wait::kReadable, &Connection::Read);
  Close("", false);
}

// Writing.

void Connection::Put(FrameType type, std::uint64_t number,
                     std::shared_ptr<const std::string> payload) {
  auto frame = std::make_unique<Frame>();
  const std::array pieces{std::as_bytes(std::span(*payload))};
  frame->header = EncodeFrameHeader(type, number, pieces);
  frame->pieces.emplace_back(frame->header);
  if (!payload->empty()) frame->pieces.emplace_back(pieces.front());
  frame->keep = std::move(payload);
  Queue(std::move(frame));
}

void Connection::Put(FrameType type, std::uint64_t number, std::string payload) {
  Put(type, number, std::make_shared<const std::string>(std::move(payload)));
}

void Connection::PutChunk(Outbox::Chunk chunk) {
  auto frame = std::make_unique<Frame>();
  std::memcpy(frame->offset.data(), &chunk.offset, frame->offset.size());
  std::vector<std::span<const std::byte>>& pieces = chunk.pieces;
  pieces.insert(pieces.begin(), frame->offset);
  frame->header = EncodeFrameHeader(FrameType::kChunk, chunk.transfer, pieces);
  pieces.insert(pieces.begin(), frame->header);
  frame->pieces = std::move(pieces);
  frame->keep = std::move(chunk.message);
  Queue(std::move(frame));
}

void Connection::Queue(std::unique_ptr<Frame> frame) {
  queue_.push_back(std::move(frame));
  Wake();
}

void Connection::Wake() {
  if (state_ != State::kOpen || writing_) return;
  writing_ = true;
  Later(&Connection::Write);
}

void Connection::Write() {
  for (std::size_t turn = 0; turn < kTurnBytes;) {
    if (queue_.empty() && state_ == State::kOpen) {
      const auto owner = owner_;
      owner->Fill(*this);
      if (state_ == State::kClosed) return;
    }
    if (queue_.empty()) {
      writing_ = false;
      if (state_ == State::kFinishing) stream_->FinishWriting();
      return;
    }
    Frame& frame = *queue_.front();
    const IoResult result = stream_->Write(std::span(frame.pieces).subspan(piece_));
    if (result.wait != Wait::kNothing) return After(result.wait, &Connection::Write);
    Advance(frame.pieces, piece_, result.bytes);
    sent_bytes_ += static_cast<std::int64_t>(result.bytes);
    turn += result.bytes;
    if (piece_ == frame.pieces.size()) {
      queue_.pop_front();
      piece_ = 0;
    }
  }
  Later(&Connection::Write);
}

// Closing.

void Connection::Close(const std::string& why, bool tell, bool permanent) {
  if (state_ == State::kClosed) return;
  const auto self = shared_from_this();
  const auto owner = std::exchange(owner_, nullptr);
  const bool setting_up = state_ == State::kTls && stream_->tls();
  counters_ = stream_->Counters();
  into_.clear();
  queue_.clear();
  place_ = {};
  if (setting_up && !tell) {
    state_ = State::kClosed;
    stream_->Close();
  } else if (setting_up) {
    // TLS may have written why: closed at once, the other side would not get to read it.
    state_ = State::kFinishing;
    stream_->FinishWriting();
    Linger();
    Later(&Connection::Read);
  } else {
    state_ = State::kClosed;
    linger_.cancel();
    stream_->Close();
  }
  if (tell && owner) owner->OnClosed(*this, why, permanent);
}

void Connection::FinishAndClose() {
  if (!open()) return;
  owner_ = nullptr;
  if (state_ == State::kTls) return Close("", false);
  state_ = State::kFinishing;
  if (reading_ == Reading::kEarly || stalled_) Later(&Connection::Read);
  if (!writing_) {
    writing_ = true;
    Later(&Connection::Write);
  }
  Linger();
}

void Connection::Linger() {
  linger_.expires_after(kLinger);
  linger_.async_wait([self = shared_from_this()](const asio::error_code& error) {
    if (!error) self->Close("", false);
  });
}

void Connection::Tick(double passed, double dead_after, double slowest, bool count_early) {
  age_s_ += passed;
  if (!open() || paused_ || (reading_ == Reading::kEarly && !count_early)) return;
  silent_s_ += passed;
  if (silent_s_ > dead_after) {
    return Close(reading_ == Reading::kEarly
                     ? std::string("a chunk of a transfer that was not announced")
                     : fmt::format("nothing has come from it for {:.3g} s", dead_after));
  }
  const bool within = reading_ != Reading::kHeader || into_.front().size() < kFrameHeaderBytes;
  if (!within) return;
  frame_s_ += passed;
  if (frame_s_ > dead_after + static_cast<double>(header_.length) / slowest) {
    Close("a frame that comes too slowly");
  }
}

}  // namespace spes::trainer
