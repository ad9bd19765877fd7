// HOST:PORT, and what addresses mean.
#pragma once

#include <asio.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace spes::trainer {

struct HostPort {
  std::string host;  // a name or an address, without brackets
  std::uint16_t port = 0;
};

// "HOST:PORT" or "[IPV6]:PORT". Throws std::invalid_argument, one line, on anything else.
HostPort ParseHostPort(const std::string& text);

// The same as text.
std::string AddressText(const HostPort& address);

// Of this machine, whoever else is in the network.
bool IsLoopback(const asio::ip::address& address);

// Whom connections are counted for: the address, of IPv6 its network of 64 bits, which is one
// subscriber's; loopback addresses as they are.
std::string CountedAs(const asio::ip::address& address);

// Looked up now. Throws std::invalid_argument, one line, when there is no such host.
std::vector<asio::ip::tcp::endpoint> Resolve(const HostPort& address);

}  // namespace spes::trainer
