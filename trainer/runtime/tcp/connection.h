// One connection that carries frames.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/runtime/tcp/asio.h"
#include "trainer/runtime/tcp/inbox.h"
#include "trainer/runtime/tcp/outbox.h"
#include "trainer/runtime/tcp/stream.h"
#include "trainer/wire/frame.h"

namespace spes::trainer {

// Reads frames and hands them on, checked; writes those that its owner gives. The owner's functions
// are called by the loop, never from within a call of the owner's own, OnClosed excepted. Kept
// alive by whoever holds it, and by the loop while it is open.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    // TLS is set up, or there is none.
    virtual void OnOpen(Connection& connection);
    // The longest payload of a frame of this type; nothing where it has no place here.
    virtual std::optional<std::uint64_t> Most(const Connection& connection,
                                              FrameType type) const = 0;
    // Any frame but a chunk. Throws WireError on what is wrong with it, for OnWireError.
    virtual void OnFrame(Connection& connection, const FrameHeader& header,
                         std::string_view payload) = 0;
    // See Inbox; only where chunks have a place.
    virtual Inbox::Place Find(Connection& connection, std::uint64_t transfer, std::int64_t offset,
                              std::int64_t bytes);
    virtual void OnChunk(Connection& connection, std::uint32_t chunk);
    // Nothing is waiting to be written: the owner may put something now.
    virtual void Fill(Connection& connection);
    // What has come is no frame that has a place here. Closes the connection, unless overridden.
    virtual void OnWireError(Connection& connection, const std::string& why);
    // `permanent`: another connection would meet the same. The connection has let go of the owner.
    virtual void OnClosed(Connection& connection, const std::string& why, bool permanent) = 0;
  };

  Connection(asio::io_context& io, std::unique_ptr<Stream> stream, std::shared_ptr<Owner> owner);

  // Sets up TLS and begins to read.
  void Start();
  void SetOwner(std::shared_ptr<Owner> owner) { owner_ = std::move(owner); }

  void Put(FrameType type, std::uint64_t number, std::shared_ptr<const std::string> payload);
  void Put(FrameType type, std::uint64_t number, std::string payload);
  void PutChunk(Outbox::Chunk chunk);
  // The owner has something to write: Fill is called soon.
  void Wake();
  // The owner knows by now where the chunk belongs that it called early.
  void Resume();
  // Nothing is read in between; it does not count as silent. Both may be called again.
  void Pause() { paused_ = true; }
  void Unpause();

  // At once. OnClosed is called, from here, if `tell`.
  void Close(const std::string& why, bool tell = true, bool permanent = false);
  // Once all is written and the other side has closed too, or two seconds have passed. The owner is
  // let go of now.
  void FinishAndClose();

  // `passed` s have gone by. Closes what has been silent for `dead_after` s, or takes longer for a
  // frame than `slowest`, byte/s, allows. A connection that waits for the head of its chunk's
  // message counts as silent only if `count_early`.
  void Tick(double passed, double dead_after, double slowest, bool count_early);

  bool open() const { return state_ == State::kTls || state_ == State::kOpen; }
  bool closed() const { return state_ == State::kClosed; }
  const std::string& address() const { return stream_->address(); }
  const std::string& host() const { return stream_->host(); }
  const TlsSession* tls() const { return stream_->tls(); }
  // Also once it is closed.
  TcpCounters Counters() { return closed() ? counters_ : stream_->Counters(); }
  std::int64_t header_bytes() const { return stream_->header_bytes(); }
  std::int64_t sent_bytes() const { return sent_bytes_; }
  std::int64_t received_bytes() const { return received_bytes_; }
  // While it has been open.
  double age_s() const { return age_s_; }
  // What the last header was, or is so far: one of this format in another version; of TLS.
  bool other_version() const;
  bool other_speaks_tls() const;

  static constexpr double kSlowest = 8e3;  // byte/s, where frames are concerned

 private:
  enum class State { kTls, kOpen, kFinishing, kClosed };
  enum class Reading { kHeader, kPayload, kOffset, kEarly, kChunk, kSkip };
  struct Frame {
    FrameHeaderBytes header{};
    std::array<std::byte, 8> offset{};  // of a chunk
    std::shared_ptr<const void> keep;   // what the pieces point into
    std::vector<std::span<const std::byte>> pieces;
  };
  using Step = void (Connection::*)();

  void Later(Step step);
  void After(Wait wait, Step step);
  void Run(Step step);
  void SetUpTls();
  void Read();
  void Discard();
  void Complete();
  void OnHeader();
  void Place();
  void Expect(std::span<std::byte> into);
  void ExpectHeader();
  void ExpectMore();
  void Write();
  void Queue(std::unique_ptr<Frame> frame);
  void Linger();

  asio::io_context& io_;
  asio::steady_timer linger_;
  std::unique_ptr<Stream> stream_;
  std::shared_ptr<Owner> owner_;
  State state_ = State::kTls;
  std::int64_t sent_bytes_ = 0, received_bytes_ = 0;
  TcpCounters counters_;  // at the end
  double age_s_ = 0, silent_s_ = 0, frame_s_ = 0;

  bool paused_ = false, stalled_ = false;  // stalled: Read has to be called once it goes on
  Reading reading_ = Reading::kHeader;
  FrameHeaderBytes header_bytes_{};
  FrameHeader header_;
  std::array<std::byte, 8> offset_{};
  std::string payload_;  // or what is skipped
  Inbox::Place place_;
  std::vector<std::span<std::byte>> into_;  // what is read now,
  std::size_t into_at_ = 0;                 // from this piece on
  std::uint64_t rest_ = 0;                  // of the payload, beyond that

  std::deque<std::unique_ptr<Frame>> queue_;
  std::size_t piece_ = 0;  // of the front's
  bool writing_ = false;   // Write will be called
};

}  // namespace spes::trainer
