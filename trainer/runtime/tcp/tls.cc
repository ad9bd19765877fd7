#include "trainer/runtime/tcp/tls.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "trainer/runtime/tcp/certificates.h"
#include "trainer/runtime/tcp/key_files.h"

namespace spes::trainer {

namespace {

constexpr std::size_t kChannelBytes = 32;
constexpr std::string_view kChannelLabel = "EXPORTER-Channel-Binding";
constexpr std::size_t kReadAhead = 256 << 10;

std::string LastError() {
  const unsigned long error = ERR_peek_last_error();
  const char* reason = ERR_reason_error_string(error);
  return reason ? reason : "an error without a name";
}

// What the other side says about this side's certificate, and the like; null: nothing of that kind.
const char* RefusedByOther(int reason) {
  switch (reason) {
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
      return "the other side asks for a certificate, and none was shown";
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
      return "the other side does not take this side's certificate: it has expired";
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
      return "the other side does not take this side's certificate: it was signed by an authority "
             "that the other side does not know";
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
      return "the other side does not take this side's certificate";
    default:
      return nullptr;
  }
}

void CheckReadable(const char* what, const std::string& path) {
  if (path.empty()) throw std::invalid_argument(fmt::format("TLS needs the file of the {}", what));
  if (!std::ifstream(path)) {
    throw std::invalid_argument(
        fmt::format("{}: cannot be read as the {}: {}", path, what, std::strerror(errno)));
  }
}

}  // namespace

TlsContext::TlsContext(const TcpSecurity& security, bool coordinator)
    : context_(SSL_CTX_new(coordinator ? TLS_server_method() : TLS_client_method()), SSL_CTX_free),
      authority_(security.authority) {
  SSL_CTX* context = context_.get();
  if (!context) throw std::runtime_error("OpenSSL: " + LastError());
  ERR_clear_error();
  SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_read_ahead(context, 1);
  SSL_CTX_set_default_read_buffer_len(context, kReadAhead);
  // Nobody is there to type one.
  SSL_CTX_set_default_passwd_cb(context, [](char*, int, int, void*) { return 0; });

  if (coordinator || !security.certificate.empty()) {
    CheckReadable("certificate", security.certificate);
    CheckReadable("key", security.key);
    if (SSL_CTX_use_certificate_chain_file(context, security.certificate.c_str()) != 1) {
      throw std::invalid_argument(
          fmt::format("{}: no certificate in PEM form: {}", security.certificate, LastError()));
    }
    if (SSL_CTX_use_PrivateKey_file(context, security.key.c_str(), SSL_FILETYPE_PEM) != 1) {
      const bool other = ERR_GET_REASON(ERR_peek_last_error()) == X509_R_KEY_VALUES_MISMATCH ||
                         ERR_GET_REASON(ERR_peek_last_error()) == X509_R_KEY_TYPE_MISMATCH;
      throw std::invalid_argument(
          other ? fmt::format("{}: not the key of the certificate {}", security.key,
                              security.certificate)
                : fmt::format("{}: no key in PEM form without a passphrase: {}", security.key,
                              LastError()));
    }
    CheckPrivate(security.key);
  }
  if (!coordinator || security.ask_certificate) {
    if (!security.authority.empty() || coordinator) {
      CheckReadable("authority", security.authority);
      if (SSL_CTX_load_verify_locations(context, security.authority.c_str(), nullptr) != 1) {
        throw std::invalid_argument(
            fmt::format("{}: no certificates in PEM form: {}", security.authority, LastError()));
      }
    } else if (SSL_CTX_set_default_verify_paths(context) != 1) {
      throw std::runtime_error("OpenSSL: " + LastError());
    }
    SSL_CTX_set_verify(
        context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
        [](int good, X509_STORE_CTX* store) { return TlsSession::OnVerify(good, store); });
  }
  ERR_clear_error();
}

std::shared_ptr<TlsContext> TlsContext::OfCoordinator(const TcpSecurity& security) {
  return std::shared_ptr<TlsContext>(new TlsContext(security, true));
}

std::shared_ptr<TlsContext> TlsContext::OfNode(const TcpSecurity& security) {
  return std::shared_ptr<TlsContext>(new TlsContext(security, false));
}

std::unique_ptr<TlsSession> TlsContext::Accept(int fd) const {
  return std::unique_ptr<TlsSession>(new TlsSession(context_.get(), fd, true, authority_));
}

std::unique_ptr<TlsSession> TlsContext::Connect(int fd, const std::string& host) const {
  std::unique_ptr<TlsSession> session(new TlsSession(context_.get(), fd, false, authority_));
  session->host_ = host;
  SSL* ssl = session->ssl_.get();
  if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host.c_str()) != 1) {
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    SSL_set_tlsext_host_name(ssl, host.c_str());
    if (SSL_set1_host(ssl, host.c_str()) != 1) {
      throw StreamError(fmt::format("\"{}\" is no name of a host", host), true);
    }
  }
  ERR_clear_error();
  return session;
}

TlsSession::TlsSession(ssl_ctx_st* context, int fd, bool accept, std::string authority)
    : ssl_(SSL_new(context), SSL_free), authority_(std::move(authority)) {
  if (!ssl_ || SSL_set_fd(ssl_.get(), fd) != 1) throw StreamError("TLS: " + LastError());
  SSL_set_app_data(ssl_.get(), this);
  SSL_set_cert_cb(
      ssl_.get(),
      [](SSL*, void* self) {
        static_cast<TlsSession*>(self)->asked_ = true;
        return 1;
      },
      this);
  if (accept) {
    SSL_set_accept_state(ssl_.get());
  } else {
    SSL_set_connect_state(ssl_.get());
  }
}

TlsSession::~TlsSession() = default;

int TlsSession::OnVerify(int good, void* store) {
  if (good) return 1;
  auto* check = static_cast<X509_STORE_CTX*>(store);
  auto* ssl =
      static_cast<SSL*>(X509_STORE_CTX_get_ex_data(check, SSL_get_ex_data_X509_STORE_CTX_idx()));
  auto* session = static_cast<TlsSession*>(SSL_get_app_data(ssl));
  session->complaint_ = Explain(check, session->host_, session->authority_);
  return 0;
}

void TlsSession::Fail(int result, const char* doing) {
  const int error = SSL_get_error(ssl_.get(), result);
  const int cause = errno;
  const unsigned long first = ERR_peek_error();
  const std::string text = LastError();
  ERR_clear_error();
  if (!complaint_.empty()) throw StreamError(complaint_, true);
  const int reason = ERR_GET_REASON(first);
  if (error == SSL_ERROR_ZERO_RETURN || (error == SSL_ERROR_SYSCALL && cause == 0) ||
      (error == SSL_ERROR_SSL && reason == SSL_R_UNEXPECTED_EOF_WHILE_READING)) {
    throw StreamError("the other side has closed the connection");
  }
  if (error == SSL_ERROR_SYSCALL) throw StreamError(std::strerror(cause));
  if (const char* refused = RefusedByOther(reason)) throw StreamError(refused, true);
  if (reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_HTTP_REQUEST ||
      reason == SSL_R_BAD_RECORD_TYPE) {
    // OpenSSL says nothing to who speaks no TLS at all; our own nodes know an alert when they see
    // one: fatal, protocol version (RFC 8446, section 6).
    static constexpr unsigned char kAlert[] = {0x15, 3, 3, 0, 2, 2, 70};
    if (SSL_is_server(ssl_.get())) {
      send(SSL_get_fd(ssl_.get()), kAlert, sizeof(kAlert), MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    throw StreamError("the other side does not speak TLS");
  }
  throw StreamError(fmt::format("TLS, {}: {}", doing, text));
}

Wait TlsSession::Handshake() {
  ERR_clear_error();
  errno = 0;
  const int result = SSL_do_handshake(ssl_.get());
  if (result == 1) return Wait::kNothing;
  const int error = SSL_get_error(ssl_.get(), result);
  if (error == SSL_ERROR_WANT_READ) return Wait::kReadable;
  if (error == SSL_ERROR_WANT_WRITE) return Wait::kWritable;
  Fail(result, "handshake");
}

IoResult TlsSession::Read(std::span<std::byte> into) {
  ERR_clear_error();
  errno = 0;
  std::size_t bytes = 0;
  const int result = SSL_read_ex(ssl_.get(), into.data(), into.size(), &bytes);
  if (result == 1) return {bytes, Wait::kNothing};
  const int error = SSL_get_error(ssl_.get(), result);
  if (error == SSL_ERROR_WANT_READ) return {0, Wait::kReadable};
  if (error == SSL_ERROR_WANT_WRITE) return {0, Wait::kWritable};
  Fail(result, "reading");
}

IoResult TlsSession::Write(std::span<const std::byte> from) {
  ERR_clear_error();
  errno = 0;
  std::size_t bytes = 0;
  const int result = SSL_write_ex(ssl_.get(), from.data(), from.size(), &bytes);
  if (result == 1) return {bytes, Wait::kNothing};
  const int error = SSL_get_error(ssl_.get(), result);
  if (error == SSL_ERROR_WANT_READ) return {0, Wait::kReadable};
  if (error == SSL_ERROR_WANT_WRITE) return {0, Wait::kWritable};
  Fail(result, "writing");
}

void TlsSession::Finish() noexcept {
  if (SSL_is_init_finished(ssl_.get())) SSL_shutdown(ssl_.get());
  ERR_clear_error();
}

std::string TlsSession::Channel() const {
  std::string value(kChannelBytes, '\0');
  if (SSL_export_keying_material(ssl_.get(), reinterpret_cast<unsigned char*>(value.data()),
                                 value.size(), kChannelLabel.data(), kChannelLabel.size(), nullptr,
                                 0, 0) != 1) {
    throw StreamError("TLS: " + LastError());
  }
  return value;
}

std::optional<NodeId> TlsSession::CertifiedNode() const {
  const X509* certificate = SSL_get0_peer_certificate(ssl_.get());
  return certificate ? NodeOf(certificate) : std::nullopt;
}

}  // namespace spes::trainer
