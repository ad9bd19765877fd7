// TLS 1.3 over a socket that does not block.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "trainer/protocol/messages.h"
#include "trainer/runtime/tcp/tcp_runtime.h"

struct ssl_ctx_st;
struct ssl_st;

namespace spes::trainer {

// Why a connection cannot go on. One line.
class StreamError : public std::runtime_error {
 public:
  explicit StreamError(const std::string& what, bool permanent = false)
      : std::runtime_error(what), permanent_(permanent) {}
  // Another connection would meet the same.
  bool permanent() const { return permanent_; }

 private:
  bool permanent_;
};

// What to wait for before trying again.
enum class Wait { kNothing, kReadable, kWritable };

struct IoResult {
  std::size_t bytes = 0;  // > 0 unless there is something to wait for
  Wait wait = Wait::kNothing;
};

// One end of a connection. Everything throws StreamError.
class TlsSession {
 public:
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  // kNothing: done. A refusal says which certificate it is about and why: expired (when), of
  // another host (which names it has), signed by nobody who is known.
  Wait Handshake();

  IoResult Read(std::span<std::byte> into);
  // After a wait the same bytes must be offered again, wherever they lie then.
  IoResult Write(std::span<const std::byte> from);

  // Says that nothing follows. Never throws.
  void Finish() noexcept;

  // A value that only the two ends of this connection can have (RFC 9266).
  std::string Channel() const;
  // A node: whether the coordinator has asked for its certificate.
  bool asked_for_certificate() const { return asked_; }
  // The node that the other side's certificate was made for, see keys.h; nothing where it has none
  // or is silent on this.
  std::optional<NodeId> CertifiedNode() const;

 private:
  friend class TlsContext;
  TlsSession(ssl_ctx_st* context, int fd, bool accept, std::string authority);
  [[noreturn]] void Fail(int result, const char* doing);
  static int OnVerify(int good, void* store);

  std::unique_ptr<ssl_st, void (*)(ssl_st*)> ssl_;
  std::string host_;       // that was dialled
  std::string authority_;  // the file
  std::string complaint_;  // about the other side's certificate
  bool asked_ = false;
};

// Certificates and keys, read once. The two functions throw std::invalid_argument, one line, when a
// file cannot be read, is not what it should be, or certificate and key do not fit.
class TlsContext {
 public:
  static std::shared_ptr<TlsContext> OfCoordinator(const TcpSecurity& security);
  // Without an authority: those that the system trusts.
  static std::shared_ptr<TlsContext> OfNode(const TcpSecurity& security);

  // `fd` must outlive the session.
  std::unique_ptr<TlsSession> Accept(int fd) const;
  // `host`: a name or address that the other side's certificate must be for.
  std::unique_ptr<TlsSession> Connect(int fd, const std::string& host) const;

 private:
  explicit TlsContext(const TcpSecurity& security, bool coordinator);

  std::unique_ptr<ssl_ctx_st, void (*)(ssl_ctx_st*)> context_;
  std::string authority_;
};

}  // namespace spes::trainer
