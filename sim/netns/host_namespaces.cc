#include "sim/netns/host_namespaces.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "sim/netns/tunnel.h"
#include "sim/refuse.h"

namespace spes::sim {
namespace {

constexpr const char* kDevice = "wan";
constexpr const char* kCoordinator = "coordinator";
constexpr const char* kNode = "node";
constexpr int kMostHosts = 250;  // that AddressOf has room for
constexpr std::size_t kLongestPrefix = 32;

std::string AddressOf(int host) { return fmt::format("10.77.0.{}", host + 1); }

void CheckPrefix(const std::string& prefix) {
  const bool good =
      !prefix.empty() && prefix.size() <= kLongestPrefix && std::ranges::all_of(prefix, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
      });
  if (!good) {
    Refuse("the prefix '{}' of namespaces: give 1 to {} lower-case letters, digits, - and _",
           prefix, kLongestPrefix);
  }
}

void CheckMachine() {
  if (geteuid() != 0) {
    throw std::runtime_error("network namespaces and TAP devices want root: run this with sudo");
  }
  try {
    RunCommand("ip -V");
  } catch (const std::exception&) {
    throw std::runtime_error("there is no ip command: install the package iproute2");
  }
}

// Nobody else's as long as the descriptor is open, and gone with the process, however that ends.
// Beside the namespaces' names, which are the machine's, whatever network namespace we are in.
Descriptor Lock(const std::string& prefix) {
  const std::string file = fmt::format("/run/spes-sim-wan-{}.lock", prefix);
  Descriptor lock(Check(open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600), file));
  if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) Check(-1, "locking " + file);
    throw std::runtime_error(fmt::format(
        "another process holds the namespaces {}-*: end it, or choose another prefix", prefix));
  }
  return lock;
}

// Whether a namespace of this name is one of ours, whatever the number of nodes was.
bool IsOurs(const std::string& name, const std::string& prefix) {
  if (!name.starts_with(prefix + '-')) return false;
  const std::string host = name.substr(prefix.size() + 1);
  if (host == kCoordinator) return true;
  const std::string node(kNode);
  return host.starts_with(node) && host.size() > node.size() &&
         host.find_first_not_of("0123456789", node.size()) == std::string::npos;
}

void RemoveLeftovers(const std::string& prefix) {
  std::vector<std::string> left;
  std::error_code none;  // where nobody has ever made one
  for (const auto& entry : std::filesystem::directory_iterator("/run/netns", none)) {
    const std::string name = entry.path().filename();
    if (IsOurs(name, prefix)) left.push_back(name);
  }
  for (const std::string& name : left) RunCommand("ip netns delete " + name);
}

void ConnectHost(const HostNamespacesSettings& settings, const Namespace& space, int host) {
  std::string options;
  if (!settings.congestion.empty()) options += " congctl " + settings.congestion;
  if (settings.initial_window > 0) options += fmt::format(" initcwnd {}", settings.initial_window);
  std::string batch = fmt::format("route replace 10.77.0.0/16 dev {} src {}{}\n", kDevice,
                                  AddressOf(host), options);
  for (int other = 0; other <= settings.nodes; ++other) {
    if (other == host) continue;
    batch += fmt::format("neigh replace {} lladdr {} dev {} nud permanent\n", AddressOf(other),
                         settings.macs[other], kDevice);
  }
  space.Command("ip -batch - <<'end'\n" + batch + "end\n");
  space.Set("ipv4/tcp_no_metrics_save", "1");
  if (settings.tcp_buffer > 0) {
    space.Set("ipv4/tcp_rmem", fmt::format("4096 131072 {}", settings.tcp_buffer));
    space.Set("ipv4/tcp_wmem", fmt::format("4096 16384 {}", settings.tcp_buffer));
  }
}

}  // namespace

HostNamespaces::HostNamespaces(const HostNamespacesSettings& settings) {
  CheckPrefix(settings.prefix);
  if (settings.nodes < 0 || settings.nodes >= kMostHosts) {
    Refuse("namespaces for {} nodes: at most {}", settings.nodes, kMostHosts - 1);
  }
  CheckMachine();
  lock_ = Lock(settings.prefix);
  RemoveLeftovers(settings.prefix);
  for (int host = 0; host <= settings.nodes; ++host) {
    names_.push_back(settings.prefix + '-' +
                     (host == settings.nodes ? kCoordinator : kNode + std::to_string(host)));
    const Namespace& space = spaces_.emplace_back(names_.back());
    taps_.push_back(OpenTunnel(space, {.carries = TunnelSettings::Carries::kEthernetFrames,
                                       .device = kDevice,
                                       .mac = settings.macs[host],
                                       .address = AddressOf(host) + "/16",
                                       .mtu = settings.mtu,
                                       .blocking = true}));
    ConnectHost(settings, space, host);
  }
}

std::string HostNamespaces::Address(int host) const { return AddressOf(host); }

std::int64_t HostNamespaces::DroppedByDevices() const {
  std::int64_t dropped = 0;
  for (const Namespace& space : spaces_) dropped += space.DroppedByDevices();
  return dropped;
}

}  // namespace spes::sim
