#include "trainer/runtime/tcp/host_port.h"

#include <fmt/format.h>

#include <charconv>
#include <stdexcept>

namespace spes::trainer {

HostPort ParseHostPort(const std::string& text) {
  const auto colon = text.rfind(':');
  HostPort address;
  bool good = colon != std::string::npos;
  if (good) {
    address.host = text.substr(0, colon);
    if (address.host.starts_with('[') && address.host.ends_with(']')) {
      address.host = address.host.substr(1, address.host.size() - 2);
    } else {
      good = address.host.find(':') == std::string::npos;  // which of them would be the port's?
    }
    const char* end = text.data() + text.size();
    const auto result = std::from_chars(text.data() + colon + 1, end, address.port);
    good = good && !address.host.empty() && result.ec == std::errc() && result.ptr == end;
  }
  if (!good) {
    throw std::invalid_argument(fmt::format(
        "\"{}\" is no address: write HOST:PORT or [IPV6]:PORT, the port at most 65535", text));
  }
  return address;
}

std::string AddressText(const HostPort& address) {
  return address.host.find(':') == std::string::npos
             ? fmt::format("{}:{}", address.host, address.port)
             : fmt::format("[{}]:{}", address.host, address.port);
}

}  // namespace spes::trainer
