// Taking an address to listen on.
#pragma once

#include <vector>

#include "trainer/runtime/tcp/asio.h"

namespace spes::trainer {

// Opens, binds and listens at the first of the endpoints, one at least, where that works. Throws
// std::invalid_argument, one line that says what to do, when none is to be had: the last one is
// taken, not allowed or not of this machine.
void Listen(asio::ip::tcp::acceptor& acceptor,
            const std::vector<asio::ip::tcp::endpoint>& endpoints);

}  // namespace spes::trainer
