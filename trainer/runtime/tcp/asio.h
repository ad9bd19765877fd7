// Asio, for everybody who uses it. What asio takes from the standard library depends on which of
// its headers came before: with one here, every file gets the same inline functions.
#pragma once

#include <cstddef>
// The thread sanitizer knows nothing of fences and GCC says so of each; asio's queues have locks
// besides.
#if defined(__SANITIZE_THREAD__)
#define ASIO_DISABLE_FENCED_BLOCK
#endif
#include <asio.hpp>  // IWYU pragma: export
