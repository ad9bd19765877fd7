// A connection's stream in memory: what the other side sends is said by a test.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/runtime/tcp/asio.h"
#include "trainer/runtime/tcp/stream.h"

namespace spes::trainer {

// The other side's end. Outlives the stream, which may be gone at any time.
class MemoryEnd {
 public:
  // No read and no write is of more than `most` bytes.
  explicit MemoryEnd(asio::io_context& io, std::size_t most = ~std::size_t{0})
      : io_(io), most_(most) {}

  void Say(std::string_view bytes);
  // Nothing follows.
  void Finish();

  // What was written to it, since the last call.
  std::string Heard() { return std::exchange(written_, {}); }
  bool closed() const { return closed_; }  // by this side
  bool exists() const { return exists_; }  // the stream does

 private:
  friend class MemoryStream;
  void WakeUp(bool good);

  asio::io_context& io_;
  std::size_t most_;
  std::string said_;  // not read yet from `read_` on
  std::size_t read_ = 0;
  bool finished_ = false;
  std::string written_;
  bool closed_ = false, exists_ = false;
  std::vector<std::function<void(bool)>> waiting_;  // for something to read
};

// See Stream. Without TLS.
class MemoryStream final : public Stream {
 public:
  explicit MemoryStream(std::shared_ptr<MemoryEnd> end, const std::string& host = "127.0.0.1");
  ~MemoryStream() override { end_->exists_ = false; }

  Wait Handshake() override { return Wait::kNothing; }
  IoResult Read(InPieces pieces) override;
  IoResult Write(OutPieces pieces) override;
  void When(Wait wait, std::function<void(bool)> f) override;
  void FinishWriting() noexcept override {}
  bool Discard() noexcept override;
  void Close() noexcept override;
  const TlsSession* tls() const override { return nullptr; }
  TcpCounters Counters() override { return {}; }

 private:
  std::shared_ptr<MemoryEnd> end_;
};

}  // namespace spes::trainer
