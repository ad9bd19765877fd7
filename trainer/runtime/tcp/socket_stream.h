// A connected socket, with TLS or without.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "trainer/runtime/tcp/asio.h"
#include "trainer/runtime/tcp/stream.h"

namespace spes::trainer {

// "ADDRESS:PORT", or "[ADDRESS]:PORT".
std::string AddressText(const asio::ip::tcp::endpoint& endpoint);

// See Stream for what each function promises.
class SocketStream final : public Stream {
 public:
  // Throws StreamError.
  explicit SocketStream(asio::ip::tcp::socket socket);

  // Before anything else is done. `host`: that was dialled. Throws StreamError.
  void UseTls(const TlsContext& context, bool accept, const std::string& host);

  Wait Handshake() override;
  IoResult Read(InPieces pieces) override;
  IoResult Write(OutPieces pieces) override;
  void When(Wait wait, std::function<void(bool)> f) override;
  void FinishWriting() noexcept override;
  bool Discard() noexcept override;
  void Close() noexcept override;
  const TlsSession* tls() const override { return tls_.get(); }
  TcpCounters Counters() override { return ReadCounters(socket_.native_handle()); }

 private:
  std::span<const std::byte> Staged(OutPieces pieces);

  asio::ip::tcp::socket socket_;
  std::unique_ptr<TlsSession> tls_;
  std::vector<std::byte> staging_;  // small pieces that share a record of TLS
};

}  // namespace spes::trainer
