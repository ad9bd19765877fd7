#include "trainer/runtime/tcp/socket_options.h"

#include <fmt/format.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>

namespace spes::trainer {

namespace {

bool SetCongestion(int fd, const std::string& name) {
  return setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(),
                    static_cast<socklen_t>(name.size())) == 0;
}

std::string FirstLine(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

void SetInt(int fd, int option, int value, const char* name) {
  if (setsockopt(fd, IPPROTO_TCP, option, &value, sizeof(value)) != 0) {
    throw std::runtime_error(fmt::format("{}: {}", name, std::strerror(errno)));
  }
}

}  // namespace

void CheckCongestion(const std::string& name) {
  if (name.empty()) return;
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) throw std::runtime_error(fmt::format("no socket: {}", std::strerror(errno)));
  const bool good = SetCongestion(fd, name);
  const int error = errno;
  close(fd);
  if (good) return;
  if (error == EPERM) {
    throw std::invalid_argument(
        fmt::format("congestion control \"{}\" is not for this user; these are: {}", name,
                    FirstLine("/proc/sys/net/ipv4/tcp_allowed_congestion_control")));
  }
  throw std::invalid_argument(
      fmt::format("this system has no congestion control \"{}\"; it has: {}", name,
                  FirstLine("/proc/sys/net/ipv4/tcp_available_congestion_control")));
}

void SetUpSocket(int fd, const std::string& congestion, std::chrono::milliseconds dead_after) {
  SetInt(fd, TCP_NODELAY, 1, "TCP_NODELAY");
  SetInt(fd, TCP_USER_TIMEOUT, static_cast<int>(dead_after.count()), "TCP_USER_TIMEOUT");
  if (!congestion.empty() && !SetCongestion(fd, congestion)) {
    throw std::runtime_error(
        fmt::format("congestion control \"{}\": {}", congestion, std::strerror(errno)));
  }
}

TcpCounters ReadCounters(int fd) {
  tcp_info info;
  std::memset(&info, 0, sizeof(info));
  socklen_t size = sizeof(info);
  TcpCounters counters;
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return counters;
  counters.sent_bytes = static_cast<std::int64_t>(info.tcpi_bytes_sent);
  counters.sent_segments = info.tcpi_data_segs_out;
  counters.retransmitted_bytes = static_cast<std::int64_t>(info.tcpi_bytes_retrans);
  counters.retransmitted_segments = info.tcpi_total_retrans;
  counters.needless_segments = info.tcpi_dsack_dups;
  counters.rtt_s = 1e-6 * info.tcpi_rtt;
  // All ones: never measured.
  counters.rtt_min_s = info.tcpi_min_rtt == ~0U ? 0 : 1e-6 * info.tcpi_min_rtt;
  return counters;
}

}  // namespace spes::trainer
