#include "tests/kernel/kernel_transfer.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <stdexcept>
#include <thread>
#include <vector>

namespace spes::kernel {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint16_t kPort = 9000;
constexpr std::uint32_t kSegment = 1448;
constexpr int kPatienceMs = 20'000;

template <typename Value>
void Set(int socket_fd, int level, int option, const Value& value, const std::string& what) {
  sim::Check(setsockopt(socket_fd, level, option, &value, sizeof value), what);
}

sim::Descriptor NewSocket() {
  return sim::Descriptor(sim::Check(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "a socket"));
}

void SetNonBlocking(int socket_fd) {
  sim::Check(fcntl(socket_fd, F_SETFL, O_NONBLOCK), "a socket that does not block");
}

sockaddr_in Address(const std::string& host) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(kPort);
  inet_pton(AF_INET, host.c_str(), &address.sin_addr);
  return address;
}

// Open connections, and how many bytes each has still to carry.
struct Streams {
  std::vector<sim::Descriptor> senders, receivers;
  std::vector<std::int64_t> bytes;
};

Streams Connect(const TransferEnds& ends, const TransferSettings& settings) {
  // Ample: all that can be in flight, several times over, at the receiver with the kernel's own
  // overhead for each packet. (The kernel reserves twice what it is told.)
  const int buffer = static_cast<int>(std::min(8 * ends.in_flight_bytes + 4e6, 5e8));
  const sockaddr_in address = Address(ends.receiver_address);
  sim::Descriptor listener;
  ends.receiver.Run([&] {
    listener = NewSocket();
    Set(listener.get(), SOL_SOCKET, SO_REUSEADDR, 1, "an address to use again");
    Set(listener.get(), SOL_SOCKET, SO_RCVBUFFORCE, buffer, "a receive buffer");
    sim::Check(bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
               "binding");
    sim::Check(listen(listener.get(), settings.streams), "listening");
  });
  Streams streams;
  for (int i = 0; i < settings.streams; ++i) {
    ends.sender.Run([&] {
      const sim::Descriptor& socket_fd = streams.senders.emplace_back(NewSocket());
      sim::Check(
          setsockopt(socket_fd.get(), IPPROTO_TCP, TCP_CONGESTION, settings.congestion.c_str(),
                     static_cast<socklen_t>(settings.congestion.size())),
          "congestion control " + settings.congestion);
      Set(socket_fd.get(), SOL_SOCKET, SO_SNDBUFFORCE, buffer, "a send buffer");
      Set(socket_fd.get(), IPPROTO_TCP, TCP_NODELAY, 1, "no delay");
      sim::Check(
          connect(socket_fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
          "connecting");
      SetNonBlocking(socket_fd.get());
    });
    streams.receivers.emplace_back(sim::Check(
        accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC), "accept"));
    streams.bytes.push_back(settings.bytes / settings.streams +
                            (i < settings.bytes % settings.streams ? 1 : 0));
  }
  return streams;
}

// Calls `move(fd, bytes)`, which does what read and write do, on whichever socket is ready until
// all bytes are moved. The sockets must not block.
template <typename Move>
void MoveAll(const std::vector<sim::Descriptor>& sockets, std::vector<std::int64_t> left,
             short ready, const Move& move) {
  std::vector<pollfd> waiting;
  for (const sim::Descriptor& socket_fd : sockets) waiting.push_back({socket_fd.get(), ready, 0});
  for (;;) {
    for (std::size_t i = 0; i < sockets.size(); ++i) {
      while (left[i] > 0) {
        const ssize_t moved = move(sockets[i].get(), left[i]);
        if (moved < 0 && errno == EAGAIN) break;
        if (sim::Check(moved, "a TCP stream") == 0)
          throw std::runtime_error("a TCP stream has ended");
        left[i] -= moved;
      }
      if (left[i] <= 0) waiting[i].fd = -1;  // poll looks away
    }
    if (std::ranges::all_of(left, [](std::int64_t bytes) { return bytes <= 0; })) return;
    const int n = poll(waiting.data(), waiting.size(), kPatienceMs);
    if (n == 0) throw std::runtime_error("a TCP stream moves nothing for 20 s");
    if (n < 0 && errno != EINTR) sim::Check(n, "poll");
  }
}

tcp_info Information(int socket_fd) {
  tcp_info info{};
  socklen_t size = sizeof info;
  sim::Check(getsockopt(socket_fd, IPPROTO_TCP, TCP_INFO, &info, &size), "TCP_INFO");
  return info;
}

}  // namespace

TransferResult Transfer(const TransferEnds& ends, const TransferSettings& settings) {
  const Streams streams = Connect(ends, settings);
  Clock::time_point start, end;
  std::exception_ptr receiver_error;
  std::thread receiver([&] {
    try {
      // The kernel throws the bytes away without copying them.
      MoveAll(streams.receivers, streams.bytes, POLLIN, [](int socket_fd, std::int64_t most) {
        return recv(socket_fd, nullptr, static_cast<std::size_t>(most), MSG_TRUNC);
      });
      end = Clock::now();
    } catch (...) {
      receiver_error = std::current_exception();
    }
  });
  std::exception_ptr sender_error;
  try {
    const std::vector<char> zeros(1 << 18);
    start = Clock::now();
    MoveAll(streams.senders, streams.bytes, POLLOUT, [&](int socket_fd, std::int64_t most) {
      const auto size = std::min(static_cast<std::size_t>(most), zeros.size());
      return send(socket_fd, zeros.data(), size, MSG_NOSIGNAL);
    });
  } catch (...) {
    sender_error = std::current_exception();
  }
  receiver.join();
  if (sender_error) std::rethrow_exception(sender_error);
  if (receiver_error) std::rethrow_exception(receiver_error);

  TransferResult result;
  result.seconds = std::chrono::duration<double>(end - start).count();
  result.goodput_bps = static_cast<double>(settings.bytes) * 8 / result.seconds;
  for (const sim::Descriptor& socket_fd : streams.senders) {
    const tcp_info info = Information(socket_fd.get());
    if (info.tcpi_snd_mss != kSegment) {
      throw std::runtime_error("segments of " + std::to_string(info.tcpi_snd_mss) + " bytes");
    }
    result.retransmissions += info.tcpi_total_retrans;
    const double rtt = static_cast<double>(info.tcpi_min_rtt) * 1e-6;
    result.rtt_min_s = result.rtt_min_s == 0 ? rtt : std::min(result.rtt_min_s, rtt);
    result.window_limited_s =
        std::max(result.window_limited_s, static_cast<double>(info.tcpi_rwnd_limited) * 1e-6);
    result.buffer_limited_s =
        std::max(result.buffer_limited_s, static_cast<double>(info.tcpi_sndbuf_limited) * 1e-6);
  }
  return result;
}

TransferResult Transfer(const KernelPath& path, const TransferSettings& settings) {
  const double in_flight =
      path.settings().bps / 8 * sim::ToSeconds(path.settings().rtt) + path.QueueBytes();
  const KernelPath::Drops before = path.drops();
  TransferResult result = Transfer(
      {path.sender(), path.receiver(), KernelPath::ReceiverAddress(), in_flight}, settings);
  const KernelPath::Drops after = path.drops();
  result.drops = {.queue = after.queue - before.queue,
                  .elsewhere = after.elsewhere - before.elsewhere};
  return result;
}

}  // namespace spes::kernel
