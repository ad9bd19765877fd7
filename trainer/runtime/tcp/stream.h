// A connected socket, with TLS or without. Does not block.
#pragma once

#include <asio.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trainer/runtime/tcp/socket_options.h"
#include "trainer/runtime/tcp/tls.h"

namespace spes::trainer {

using InPieces = std::span<const std::span<std::byte>>;
using OutPieces = std::span<const std::span<const std::byte>>;

// "ADDRESS:PORT", or "[ADDRESS]:PORT".
std::string AddressText(const asio::ip::tcp::endpoint& endpoint);

// Everything throws StreamError, but where it says otherwise.
class Stream {
 public:
  explicit Stream(asio::ip::tcp::socket socket);

  // Before anything else is done. `host`: that was dialled.
  void UseTls(const TlsContext& context, bool accept, const std::string& host);

  // Of TLS; kNothing: done, or there is none.
  Wait Handshake();

  // Into the pieces, one after the other, none of them empty; as much as there is.
  IoResult Read(InPieces pieces);
  // After a wait the same bytes must be offered again.
  IoResult Write(OutPieces pieces);

  // Calls `f` once, later; with false when the stream has been closed meanwhile. Never kNothing.
  void When(Wait wait, std::function<void(bool)> f);

  // Never throw. FinishWriting: what was written arrives, then the end. Discard reads what comes
  // and forgets it; false once there will be nothing more.
  void FinishWriting() noexcept;
  bool Discard() noexcept;
  void Close() noexcept;

  const TlsSession* tls() const { return tls_.get(); }
  TcpCounters Counters() { return ReadCounters(socket_.native_handle()); }
  std::int64_t header_bytes() const { return header_bytes_; }  // of each segment
  // Of the other side: with its port, and as CountedAs has it.
  const std::string& address() const { return address_; }
  const std::string& host() const { return host_; }

 private:
  std::span<const std::byte> Staged(OutPieces pieces);

  asio::ip::tcp::socket socket_;
  std::string address_, host_;
  std::int64_t header_bytes_ = kHeaderBytes4;
  std::unique_ptr<TlsSession> tls_;
  std::vector<std::byte> staging_;  // small pieces that share a record of TLS
};

}  // namespace spes::trainer
