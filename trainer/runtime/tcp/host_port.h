// HOST:PORT as text.
#pragma once

#include <cstdint>
#include <string>

namespace spes::trainer {

struct HostPort {
  std::string host;  // a name or an address, without brackets
  std::uint16_t port = 0;
};

// "HOST:PORT" or "[IPV6]:PORT". Throws std::invalid_argument, one line, on anything else.
HostPort ParseHostPort(const std::string& text);

// The same as text.
std::string AddressText(const HostPort& address);

}  // namespace spes::trainer
