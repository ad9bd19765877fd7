#include "trainer/runtime/tcp/stream.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "trainer/runtime/tcp/address.h"

namespace spes::trainer {

namespace {

constexpr std::size_t kMaxPieces = 64;          // of one system call
constexpr std::size_t kRecordBytes = 16 << 10;  // of TLS

// Fills the array from the front; returns how many.
template <class Piece>
std::size_t Vectors(std::span<const Piece> pieces, std::array<iovec, kMaxPieces>& vectors) {
  const std::size_t count = std::min(pieces.size(), kMaxPieces);
  for (std::size_t i = 0; i < count; ++i) {
    vectors[i] = {const_cast<std::byte*>(pieces[i].data()), pieces[i].size()};
  }
  return count;
}

bool WouldBlock(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

}  // namespace

std::string AddressText(const asio::ip::tcp::endpoint& endpoint) {
  const std::string address = endpoint.address().to_string();
  return endpoint.address().is_v6() ? fmt::format("[{}]:{}", address, endpoint.port())
                                    : fmt::format("{}:{}", address, endpoint.port());
}

Stream::Stream(asio::ip::tcp::socket socket) : socket_(std::move(socket)) {
  asio::error_code error;
  const auto endpoint = socket_.remote_endpoint(error);
  if (!error) {
    address_ = AddressText(endpoint);
    host_ = CountedAs(endpoint.address());
    header_bytes_ = endpoint.address().is_v6() ? kHeaderBytes6 : kHeaderBytes4;
  }
  socket_.non_blocking(true, error);
  if (error) throw StreamError(error.message());
}

void Stream::UseTls(const TlsContext& context, bool accept, const std::string& host) {
  const int fd = socket_.native_handle();
  tls_ = accept ? context.Accept(fd) : context.Connect(fd, host);
}

Wait Stream::Handshake() { return tls_ ? tls_->Handshake() : Wait::kNothing; }

IoResult Stream::Read(InPieces pieces) {
  if (tls_) return tls_->Read(pieces.front());
  std::array<iovec, kMaxPieces> vectors;
  msghdr message{};
  message.msg_iov = vectors.data();
  message.msg_iovlen = Vectors(pieces, vectors);
  const ssize_t bytes = recvmsg(socket_.native_handle(), &message, 0);
  if (bytes > 0) return {static_cast<std::size_t>(bytes), Wait::kNothing};
  if (bytes == 0) throw StreamError("the other side has closed the connection");
  if (WouldBlock(errno)) return {0, Wait::kReadable};
  throw StreamError(std::strerror(errno));
}

// What TLS is given to write: the first piece, or, where that is small, a copy of several.
std::span<const std::byte> Stream::Staged(OutPieces pieces) {
  if (pieces.size() == 1 || pieces.front().size() >= kRecordBytes) return pieces.front();
  staging_.clear();
  for (const auto piece : pieces) {
    const std::size_t size = std::min(piece.size(), kRecordBytes - staging_.size());
    staging_.insert(staging_.end(), piece.begin(),
                    piece.begin() + static_cast<std::ptrdiff_t>(size));
    if (staging_.size() == kRecordBytes) break;
  }
  return staging_;
}

IoResult Stream::Write(OutPieces pieces) {
  if (tls_) return tls_->Write(Staged(pieces));
  std::array<iovec, kMaxPieces> vectors;
  msghdr message{};
  message.msg_iov = vectors.data();
  message.msg_iovlen = Vectors(pieces, vectors);
  const ssize_t bytes = sendmsg(socket_.native_handle(), &message, MSG_NOSIGNAL);
  if (bytes > 0) return {static_cast<std::size_t>(bytes), Wait::kNothing};
  if (WouldBlock(errno)) return {0, Wait::kWritable};
  throw StreamError(std::strerror(errno));
}

void Stream::When(Wait wait, std::function<void(bool)> f) {
  const auto type =
      wait == Wait::kReadable ? asio::socket_base::wait_read : asio::socket_base::wait_write;
  socket_.async_wait(type, [f = std::move(f)](const asio::error_code& error) {
    f(error != asio::error::operation_aborted);
  });
}

void Stream::FinishWriting() noexcept {
  if (tls_) tls_->Finish();
  asio::error_code error;
  socket_.shutdown(asio::socket_base::shutdown_send, error);
}

bool Stream::Discard() noexcept {
  std::array<std::byte, 16 << 10> scratch;
  const ssize_t bytes = recv(socket_.native_handle(), scratch.data(), scratch.size(), 0);
  return bytes > 0 || (bytes < 0 && WouldBlock(errno));
}

void Stream::Close() noexcept {
  asio::error_code error;
  socket_.close(error);
}

}  // namespace spes::trainer
