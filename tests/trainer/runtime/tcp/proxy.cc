#include "tests/trainer/runtime/tcp/proxy.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <vector>

namespace spes::trainer {

namespace {

constexpr std::size_t kPiece = 32 << 10;

sockaddr_in Loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

}  // namespace

Proxy::Proxy(const std::string& target)
    : target_(static_cast<std::uint16_t>(std::stoi(target.substr(target.rfind(':') + 1)))),
      listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof(address);
  if (bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      listen(listener_, 64) != 0 ||
      getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw std::runtime_error("no proxy");
  }
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { Run(); });
}

Proxy::~Proxy() {
  stop_ = true;
  thread_.join();
  for (Pair& pair : pairs_) Close(pair);
  close(listener_);
}

std::string Proxy::address() const { return "127.0.0.1:" + std::to_string(port_); }

void Proxy::Close(Pair& pair) {
  for (int fd : {pair.up.from, pair.up.to}) {
    const linger hard{1, 0};  // a reset: nothing that waits arrives
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
    close(fd);
  }
}

void Proxy::CutAll() {
  const std::lock_guard lock(mutex_);
  for (Pair& pair : pairs_) Close(pair);
  pairs_.clear();
}

void Proxy::CutAfter(std::int64_t bytes, int cut) {
  const std::lock_guard lock(mutex_);
  cut_after_ = bytes;
  cut_ = cut;
}

void Proxy::DamageAfter(std::int64_t bytes) {
  const std::lock_guard lock(mutex_);
  damage_after_ = bytes;
}

void Proxy::Accept() {
  const int from = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (from < 0) return;
  ++connections_;
  const int to = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = Loopback(target_);
  if (refuse_ || connect(to, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    close(from);
    close(to);
    return;
  }
  fcntl(to, F_SETFL, O_NONBLOCK);
  // Little room, so that what is cut is not far behind what was sent.
  const int room = 64 << 10;
  for (int fd : {from, to}) {
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
  }
  pairs_.push_back({{from, to, {}, 0}, {to, from, {}, 0}, false});
}

bool Proxy::Move(Way& way, bool up) {
  if (way.waiting.empty()) {
    std::array<char, kPiece> piece;
    const ssize_t got = recv(way.from, piece.data(), piece.size(), 0);
    if (got == 0) return false;
    if (got < 0) return errno == EAGAIN;
    way.waiting.assign(piece.data(), static_cast<std::size_t>(got));
    if (up && damage_after_ >= 0 && up_bytes_ + got > damage_after_) {
      way.waiting[static_cast<std::size_t>(std::max<std::int64_t>(0, damage_after_ - up_bytes_))] ^=
          4;
      damage_after_ = -1;
    }
    way.bytes += got;
    (up ? up_bytes_ : down_bytes_) += got;
  }
  const ssize_t put = send(way.to, way.waiting.data(), way.waiting.size(), MSG_NOSIGNAL);
  if (put < 0) return errno == EAGAIN;
  way.waiting.erase(0, static_cast<std::size_t>(put));
  return true;
}

void Proxy::Run() {
  while (!stop_) {
    std::vector<pollfd> fds{{listener_, POLLIN, 0}};
    {
      const std::lock_guard lock(mutex_);
      if (hold_busiest_.exchange(false) && !pairs_.empty()) {
        std::ranges::max_element(pairs_, {}, [](const Pair& p) { return p.up.bytes; })->held = true;
      }
      for (const Pair& pair : pairs_) {
        if (hold_ || pair.held) continue;
        for (const Way* way : {&pair.up, &pair.down}) {
          fds.push_back({way->waiting.empty() ? way->from : way->to,
                         static_cast<short>(way->waiting.empty() ? POLLIN : POLLOUT), 0});
        }
      }
    }
    poll(fds.data(), fds.size(), 5);
    const std::lock_guard lock(mutex_);
    Accept();
    if (hold_) continue;
    for (auto pair = pairs_.begin(); pair != pairs_.end();) {
      bool good = pair->held || (Move(pair->up, true) && Move(pair->down, false));
      if (cut_after_ >= 0 && up_bytes_ >= cut_after_) {
        cut_after_ = -1;
        good = false;
        int others = cut_ - 1;
        for (auto other = pairs_.begin(); other != pairs_.end() && others > 0;) {
          const auto next = std::next(other);
          if (other != pair) {
            Close(*other);
            pairs_.erase(other);
            --others;
          }
          other = next;
        }
      }
      const auto next = std::next(pair);
      if (!good) {
        Close(*pair);
        pairs_.erase(pair);
      }
      pair = next;
    }
  }
}

}  // namespace spes::trainer
