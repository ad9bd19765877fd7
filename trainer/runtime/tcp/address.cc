#include "trainer/runtime/tcp/address.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace spes::trainer {

bool IsLoopback(const asio::ip::address& address) {
  if (address.is_v6() && address.to_v6().is_v4_mapped()) {
    return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()).is_loopback();
  }
  return address.is_loopback();
}

std::string CountedAs(const asio::ip::address& address) {
  if (address.is_v4() || address.is_loopback()) return address.to_string();
  if (address.to_v6().is_v4_mapped()) {
    return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()).to_string();
  }
  auto bytes = address.to_v6().to_bytes();
  std::fill(bytes.begin() + 8, bytes.end(), static_cast<unsigned char>(0));
  return asio::ip::make_address_v6(bytes).to_string() + "/64";
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
