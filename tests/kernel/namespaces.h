// Network namespaces of this machine's kernel: networks of their own, which vanish by themselves.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "tests/kernel/descriptor.h"

namespace spes::kernel {

// A network namespace without a name: it lives for as long as this object, a socket or a device
// descriptor in it, so that nothing is left behind however the process ends. IPv6 is off in it.
class Namespace {
 public:
  // Throws std::runtime_error where the kernel or our rights do not allow it.
  Namespace();

  // Runs `work` on a thread of its own inside the namespace, and waits. What `work` throws is
  // thrown here. Sockets and devices opened there stay in the namespace, whoever uses them.
  void Run(const std::function<void()>& work) const;

  // Runs a shell command inside the namespace and returns what it says on standard output. Throws
  // std::runtime_error with the command and all it said when it fails.
  std::string Command(const std::string& command) const;

  // What `ip link ... netns` takes as the namespace's name.
  std::string Path() const;

  // Writes below /proc/sys/net: `key` as "ipv4/ip_forward". Throws std::runtime_error.
  void Set(const std::string& key, const std::string& value) const;

  // Packets that the devices of the namespace, all together, have dropped so far, in both
  // directions. What a queueing discipline drops is not among them.
  std::int64_t DroppedByDevices() const;

 private:
  Descriptor file_;
};

}  // namespace spes::kernel
