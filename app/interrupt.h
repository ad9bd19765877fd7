// Ctrl-C and SIGTERM as a request to end in good order.
#pragma once

#include <atomic>

namespace spes::app {

// Installs the handlers, once per process. The first signal sets the flag; a second one ends the
// process at once, as it would have without handlers.
const std::atomic<bool>& InstallInterruptHandlers();

// The signal that came, or 0.
int InterruptSignal();

}  // namespace spes::app
