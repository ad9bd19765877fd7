// Taking an address to listen on.
#pragma once

#include <asio.hpp>

namespace spes::trainer {

// Opens, binds and listens. Throws std::invalid_argument, one line that says what to do, when the
// address is taken, not allowed or not of this machine.
void Listen(asio::ip::tcp::acceptor& acceptor, const asio::ip::tcp::endpoint& endpoint);

}  // namespace spes::trainer
