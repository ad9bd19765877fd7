#include "trainer/runtime/tcp/address.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <string_view>

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
