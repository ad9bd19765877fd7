// What a connection's bytes go through: a socket, or what takes the place of one in tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "trainer/runtime/tcp/socket_options.h"
#include "trainer/runtime/tcp/tls.h"

namespace spes::trainer {

using InPieces = std::span<const std::span<std::byte>>;
using OutPieces = std::span<const std::span<const std::byte>>;

// Nothing blocks; all belongs to the loop's thread. Everything throws StreamError, but where it
// says otherwise.
class Stream {
 public:
  virtual ~Stream() = default;

  // Of TLS; kNothing: done, or there is none.
  virtual Wait Handshake() = 0;

  // Into the pieces, one after the other, none of them empty; as much as there is.
  virtual IoResult Read(InPieces pieces) = 0;
  // After a wait the same bytes must be offered again.
  virtual IoResult Write(OutPieces pieces) = 0;

  // Calls `f` once, later; with false when the stream has been closed meanwhile. Never kNothing.
  virtual void When(Wait wait, std::function<void(bool)> f) = 0;

  // Never throw. FinishWriting: what was written arrives, then the end. Discard reads what comes
  // and forgets it; false once there will be nothing more.
  virtual void FinishWriting() noexcept = 0;
  virtual bool Discard() noexcept = 0;
  virtual void Close() noexcept = 0;

  // Null: without. Never throws.
  virtual const TlsSession* tls() const = 0;
  // Zeros where nobody counts. Never throws.
  virtual TcpCounters Counters() = 0;

  std::int64_t header_bytes() const { return header_bytes_; }  // of each segment
  // Of the other side: with its port, and as CountedAs has it.
  const std::string& address() const { return address_; }
  const std::string& host() const { return host_; }

 protected:
  std::string address_, host_;
  std::int64_t header_bytes_ = kHeaderBytes4;
};

}  // namespace spes::trainer
