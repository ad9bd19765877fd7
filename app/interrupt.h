// Ctrl-C and SIGTERM as a request to end in good order.
#pragma once

#include <atomic>
#include <cstdint>

namespace spes::app {

// Installs the handlers. The first signal sets the flag that is returned, the same one each time,
// which lives as long as the process; whoever has work underway may set it too. A second signal,
// half a second later or more, ends the process at once, as it would have without handlers.
std::atomic<bool>& InstallInterruptHandlers();

// The signal that came, or 0.
int InterruptSignal();

}  // namespace spes::app
