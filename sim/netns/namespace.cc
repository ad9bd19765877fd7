#include "sim/netns/namespace.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>

#include <array>
#include <exception>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace spes::sim {
namespace {

// A thread of its own, because entering a namespace is for good.
void OnThread(const std::function<void()>& work) {
  std::exception_ptr error;
  std::thread([&] {
    try {
      work();
    } catch (...) {
      error = std::current_exception();
    }
  }).join();
  if (error) std::rethrow_exception(error);
}

// What is left of it when that fails, the next process that wants the name finds.
void RemoveName(const std::string& name) {
  try {
    RunCommand("ip netns delete " + name);
  } catch (const std::exception&) {
  }
}

}  // namespace

Namespace::Namespace() {
  OnThread([this] {
    Check(unshare(CLONE_NEWNET), "a new network namespace");
    file_ = Descriptor(
        Check(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC), "/proc/thread-self/ns/net"));
  });
  SetUp();
}

Namespace::Namespace(const std::string& name) {
  RunCommand("ip netns add " + name);
  name_ = name;
  const std::string path = "/run/netns/" + name;
  try {
    file_ = Descriptor(Check(open(path.c_str(), O_RDONLY | O_CLOEXEC), path));
    SetUp();
  } catch (...) {
    RemoveName(name);
    throw;
  }
}

Namespace::~Namespace() {
  if (!name_.empty()) RemoveName(name_);
}

void Namespace::SetUp() const {
  Set("ipv6/conf/all/disable_ipv6", "1");
  Set("ipv6/conf/default/disable_ipv6", "1");
  Command("ip link set dev lo up");
}

void Namespace::Run(const std::function<void()>& work) const {
  OnThread([&] {
    Check(setns(file_.get(), CLONE_NEWNET), "entering a network namespace");
    work();
  });
}

std::string Namespace::Command(const std::string& command) const {
  std::string said;
  Run([&] { said = RunCommand(command); });
  return said;
}

std::string RunCommand(const std::string& command) {
  FILE* const pipe = popen((command + " 2>&1").c_str(), "re");
  if (pipe == nullptr) throw std::system_error(errno, std::generic_category(), command);
  std::string said;
  std::array<char, 4096> buffer;
  while (const std::size_t n = fread(buffer.data(), 1, buffer.size(), pipe)) {
    said.append(buffer.data(), n);
  }
  if (pclose(pipe) != 0) throw std::runtime_error("'" + command + "' failed: " + said);
  return said;
}

std::string Namespace::Path() const {
  return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(file_.get());
}

void Namespace::Set(const std::string& key, const std::string& value) const {
  Run([&] {
    std::ofstream file("/proc/sys/net/" + key);
    file << value << std::flush;
    if (!file) throw std::runtime_error("cannot write " + value + " to /proc/sys/net/" + key);
  });
}

std::int64_t Namespace::DroppedByDevices() const {
  std::int64_t dropped = 0;
  Run([&] {
    std::ifstream file("/proc/thread-self/net/dev");
    for (std::string line; std::getline(file, line);) {
      const std::size_t colon = line.find(':');
      if (colon == std::string::npos) continue;  // one of the two lines of titles
      // Received: bytes, packets, errors, dropped and four more; sent: the same.
      std::istringstream numbers(line.substr(colon + 1));
      std::int64_t number;
      for (int column = 0; numbers >> number; ++column) {
        if (column == 3 || column == 11) dropped += number;
      }
    }
  });
  return dropped;
}

}  // namespace spes::sim
