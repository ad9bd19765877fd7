#include "analysis/host.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <fstream>
#include <thread>

namespace spes::analysis {
namespace {

std::string ProcessorName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "";
}

}  // namespace

std::string HostDescription() {
  std::string text;
  if (utsname name; uname(&name) == 0) {
    text = fmt::format("{}, {} {} {}, ", name.nodename, name.sysname, name.release, name.machine);
  }
  if (const std::string processor = ProcessorName(); !processor.empty()) text += processor + ", ";
  const unsigned cores = std::thread::hardware_concurrency();
  return text + fmt::format("{} {}", cores, cores == 1 ? "core" : "cores");
}

}  // namespace spes::analysis
