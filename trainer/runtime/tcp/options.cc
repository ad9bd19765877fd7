#include "trainer/runtime/tcp/options.h"

#include <fmt/format.h>

#include <stdexcept>

#include "trainer/runtime/tcp/handshake.h"
#include "trainer/runtime/tcp/socket_options.h"

namespace spes::trainer {

namespace {

template <class T>
void Require(bool holds, const char* what, T value, const char* right) {
  if (!holds) throw std::invalid_argument(fmt::format("{} of {}: {}", what, value, right));
}

}  // namespace

void CheckOptions(const TcpOptions& o) {
  Require(o.streams >= 1 && o.streams <= kMaxStreams, "a number of streams", o.streams,
          "it must be from 1 to 64");
  Require(o.chunk_bytes >= kMinChunkBytes && o.chunk_bytes <= kMaxChunkBytes,
          "a chunk size in bytes", o.chunk_bytes, "it must be from 1 KiB to 64 MiB");
  Require(o.beat_every >= Seconds(0.1) && o.beat_every <= Seconds(3600), "seconds between beats",
          o.beat_every.count(), "it must be from 0.1 to 3600");
  Require(o.dead_after >= 2 * o.beat_every && o.dead_after <= Seconds(86400),
          "seconds of silence that break a connection", o.dead_after.count(),
          "it must be at least two beats and at most a day");
  Require(o.give_up_after > Seconds(0), "seconds until a session is given up",
          o.give_up_after.count(), "it must be positive");
  Require(o.dial_for >= Seconds(0), "seconds of dialling", o.dial_for.count(),
          "it must not be negative");
  Require(o.handshake_time > Seconds(0), "seconds for letting in", o.handshake_time.count(),
          "it must be positive");
  Require(o.clock_difference > Seconds(0), "seconds between two clocks", o.clock_difference.count(),
          "it must be positive");
  Require(o.connections_per_address >= 1, "a number of connections of one address",
          o.connections_per_address, "it must be positive");
  Require(o.uploads_in_memory >= 0, "a number of uploads in memory", o.uploads_in_memory,
          "it must not be negative");
  CheckCongestion(o.congestion);
}

}  // namespace spes::trainer
