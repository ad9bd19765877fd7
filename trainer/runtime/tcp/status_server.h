// HTTP for whoever watches a run: a page, /metrics, /status.json, /healthz.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "trainer/runtime/tcp/status_report.h"

namespace spes::trainer {

inline constexpr std::chrono::seconds kStale{30};

// Read-only, unencrypted, open to whoever reaches the address: meant for this machine's own
// addresses. It answers on threads of its own, from the report that was published last. /healthz
// says "ok" as long as that is not older than kStale, and 503 from then on: whoever publishes does
// so all the time.
class StatusServer {
 public:
  virtual ~StatusServer() = default;

  // Replaces what is shown. From any thread.
  virtual void Publish(std::shared_ptr<const StatusReport> report) = 0;

  // HOST:PORT with the port that was given.
  virtual std::string address() const = 0;
  // Whether only this machine can reach it.
  virtual bool loopback() const = 0;
};

// Listens and answers from now on. `address`: HOST:PORT or [IPV6]:PORT, port 0: any free one.
// Throws std::invalid_argument, one line, when the address cannot be had: taken, not allowed, not
// here.
std::unique_ptr<StatusServer> ServeStatus(const std::string& address,
                                          std::shared_ptr<const StatusReport> first);

}  // namespace spes::trainer
