#include "trainer/runtime/tcp/listen.h"

#include <fmt/format.h>

#include <stdexcept>

#include "trainer/runtime/tcp/socket_stream.h"

namespace spes::trainer {

void Listen(asio::ip::tcp::acceptor& acceptor,
            const std::vector<asio::ip::tcp::endpoint>& endpoints) {
  asio::error_code error;
  for (const auto& endpoint : endpoints) {
    acceptor.close(error);
    acceptor.open(endpoint.protocol(), error);
    if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
    if (!error) acceptor.bind(endpoint, error);
    if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
    if (!error) return;
  }
  const std::string where = AddressText(endpoints.back());
  if (error == asio::error::address_in_use) {
    throw std::invalid_argument(
        fmt::format("{} is taken by another program; name another port", where));
  }
  if (error == asio::error::access_denied) {
    throw std::invalid_argument(
        fmt::format("{}: this user may not listen there; name a port above 1023", where));
  }
  throw std::invalid_argument(
      fmt::format("{}: nobody can listen there: {}", where, error.message()));
}

}  // namespace spes::trainer
