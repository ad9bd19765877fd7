#include "tests/trainer/runtime/tcp/raw_socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstring>
#include <stdexcept>

#include "tests/trainer/runtime/tcp/endpoint.h"

namespace spes::trainer {

RawSocket::RawSocket(const std::string& address, const std::string& from)
    : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in own{};
  own.sin_family = AF_INET;
  inet_pton(AF_INET, from.c_str(), &own.sin_addr);
  if (bind(fd_, reinterpret_cast<sockaddr*>(&own), sizeof(own)) != 0) {
    throw std::runtime_error(std::strerror(errno));
  }
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port =
      htons(static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof(to)) != 0) {
    throw std::runtime_error(std::strerror(errno));
  }
}

RawSocket::~RawSocket() { close(fd_); }

void RawSocket::Say(const std::string& bytes) {
  for (std::size_t at = 0; at < bytes.size();) {
    const ssize_t put = send(fd_, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
    if (put <= 0) return;
    at += static_cast<std::size_t>(put);
  }
}

std::string RawSocket::Hear(double wait_s) {
  std::string heard;
  for (;;) {
    pollfd poll_fd{fd_, POLLIN, 0};
    if (poll(&poll_fd, 1, static_cast<int>(1e3 * wait_s)) <= 0) return heard;
    std::array<char, 4096> piece;
    const ssize_t got = recv(fd_, piece.data(), piece.size(), 0);
    if (got <= 0) return heard;
    heard.append(piece.data(), static_cast<std::size_t>(got));
  }
}

bool RawSocket::Closed(double wait_s) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(wait_s);
  std::array<char, 4096> piece;
  while (std::chrono::steady_clock::now() < until) {
    pollfd poll_fd{fd_, POLLIN, 0};
    if (poll(&poll_fd, 1, 100) > 0 && recv(fd_, piece.data(), piece.size(), 0) <= 0) return true;
  }
  return false;
}

std::optional<std::string> RawSocket::Frame(FrameType* type) {
  FrameHeaderBytes bytes;
  if (recv(fd_, bytes.data(), bytes.size(), MSG_WAITALL) != static_cast<ssize_t>(bytes.size())) {
    return std::nullopt;
  }
  const FrameHeader header = DecodeFrameHeader(bytes, 1 << 20);
  std::string payload(header.length, '\0');
  if (!payload.empty() && recv(fd_, payload.data(), payload.size(), MSG_WAITALL) !=
                              static_cast<ssize_t>(payload.size())) {
    return std::nullopt;
  }
  if (type) *type = header.type;
  return payload;
}

std::optional<Welcome> RawSocket::ShakeHands(const Hello& hello, const std::string& token) {
  Transcript said;
  said.hello = Encode(hello);
  Say(FrameBytes(FrameType::kHello, 0, said.hello));
  const auto challenge = Frame();
  if (!challenge) return std::nullopt;
  said.challenge = *challenge;
  Say(FrameBytes(FrameType::kProof, 0, Encode(Proof{NodeProof(token, said)})));
  FrameType type;
  const auto answer = Frame(&type);
  if (!answer || type != FrameType::kWelcome) return std::nullopt;
  return DecodeWelcome(*answer);
}

Hello GoodHello(NodeId node) {
  Hello hello;
  hello.node = node;
  hello.clock_us =
      std::chrono::system_clock::now().time_since_epoch() / std::chrono::microseconds(1);
  hello.chunk_bytes = static_cast<std::uint32_t>(QuickOptions().chunk_bytes);
  hello.beat_ms = 200;
  hello.scenario_hash = SomeScenario().hash;
  hello.nonce = RandomNonce();
  return hello;
}

}  // namespace spes::trainer
