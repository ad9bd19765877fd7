#include "trainer/runtime/tcp/address.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace spes::trainer {

namespace {

asio::ip::address Unmapped(const asio::ip::address& address) {
  if (!address.is_v6() || !address.to_v6().is_v4_mapped()) return address;
  return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6());
}

// The first `bytes` of an address, for its network.
template <class Address>
Address Start(const Address& address, std::ptrdiff_t bytes) {
  auto all = address.to_bytes();
  std::fill(all.begin() + bytes, all.end(), static_cast<unsigned char>(0));
  return Address(all);
}

}  // namespace

bool IsLoopback(const asio::ip::address& address) { return Unmapped(address).is_loopback(); }

std::string CountedAs(const asio::ip::address& address) {
  const auto a = Unmapped(address);
  if (a.is_v4() || a.is_loopback()) return a.to_string();
  return Start(a.to_v6(), 8).to_string() + "/64";
}

std::string NetworkOf(const asio::ip::address& address) {
  const auto a = Unmapped(address);
  if (a.is_loopback()) return a.to_string();
  return a.is_v4() ? Start(a.to_v4(), 3).to_string() + "/24"
                   : Start(a.to_v6(), 6).to_string() + "/48";
}

std::vector<asio::ip::tcp::endpoint> Resolve(const HostPort& address) {
  asio::error_code error;
  const auto literal = asio::ip::make_address(address.host, error);
  if (!error) return {{literal, address.port}};
  asio::io_context io;
  asio::ip::tcp::resolver resolver(io);
  const auto found = resolver.resolve(address.host, std::to_string(address.port),
                                      asio::ip::tcp::resolver::numeric_service, error);
  if (error || found.empty()) {
    throw std::invalid_argument(
        fmt::format("\"{}\" is no host that is known here: {}", address.host, error.message()));
  }
  std::vector<asio::ip::tcp::endpoint> endpoints;
  for (const auto& entry : found) endpoints.push_back(entry.endpoint());
  return endpoints;
}

}  // namespace spes::trainer
