// Ctrl-C and SIGTERM as a request to end in good order.
#pragma once

#include <atomic>
#include <cstdint>

namespace spes::app {

// Installs the handlers. The first signal sets `flag`, which must live as long as the process or
// until this is called with another; a second one, half a second later or more, ends the process at
// once, as it would have without handlers.
void InstallInterruptHandlers(std::atomic<bool>& flag);

// The signal that came, or 0.
int InterruptSignal();

}  // namespace spes::app
