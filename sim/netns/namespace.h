// Network namespaces of this machine's kernel: networks of their own.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "sim/netns/descriptor.h"

namespace spes::sim {

// A network namespace with nothing in it but the loopback device, which is up. IPv6 is off in it.
// Wants root.
class Namespace {
 public:
  // Without a name: it lives for as long as this object, a socket or a device descriptor in it, so
  // that nothing is left behind however the process ends. Throws std::runtime_error where the
  // kernel or our rights do not allow it.
  Namespace();

  // With a name that `ip netns` knows, for other programs to enter it by: it outlives a process
  // that is killed. Throws std::runtime_error, also when there is one of this name.
  explicit Namespace(const std::string& name);

  // Takes the name away.
  ~Namespace();
  Namespace(Namespace&&) = delete;

  // Runs `work` on a thread of its own inside the namespace, and waits. What `work` throws is
  // thrown here. Sockets and devices opened there stay in the namespace, whoever uses them.
  void Run(const std::function<void()>& work) const;

  // Runs a shell command inside the namespace and returns what it says on standard output and
  // standard error. Throws std::runtime_error with the command and all it said when it fails.
  std::string Command(const std::string& command) const;

  // What `ip link ... netns` takes as the namespace's name.
  std::string Path() const;

  // What setns takes.
  int descriptor() const { return file_.get(); }

  // Writes below /proc/sys/net: `key` as "ipv4/ip_forward". Throws std::runtime_error.
  void Set(const std::string& key, const std::string& value) const;

  // Packets that the devices of the namespace, all together, have dropped so far, in both
  // directions. What a queueing discipline drops is not among them.
  std::int64_t DroppedByDevices() const;

 private:
  void SetUp() const;

  std::string name_;  // empty: none
  Descriptor file_;
};

// Runs a shell command where we are. Returns and throws as Namespace::Command.
std::string RunCommand(const std::string& command);

}  // namespace spes::sim
