// What addresses mean.
#pragma once

#include <string>
#include <vector>

#include "trainer/runtime/tcp/asio.h"
#include "trainer/runtime/tcp/host_port.h"

namespace spes::trainer {

// Of this machine, whoever else is in the network.
bool IsLoopback(const asio::ip::address& address);

// Whom connections are counted for: the address, of IPv6 its network of 64 bits, which is one
// subscriber's; loopback addresses as they are.
std::string CountedAs(const asio::ip::address& address);

// Whose network it is in, as far as addresses tell: of IPv4 24 bits, of IPv6 48, which is one site;
// loopback addresses as they are.
std::string NetworkOf(const asio::ip::address& address);

// Looked up now. Throws std::invalid_argument, one line, when there is no such host.
std::vector<asio::ip::tcp::endpoint> Resolve(const HostPort& address);

}  // namespace spes::trainer
