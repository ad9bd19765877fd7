#include "trainer/runtime/tcp/status_server.h"

#include <fmt/format.h>
#include <httplib.h>

#include <chrono>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>

#include "trainer/runtime/tcp/address.h"
#include "trainer/runtime/tcp/listen.h"
#include "trainer/runtime/tcp/status_text.h"
#include "trainer/runtime/tcp/stream.h"

namespace spes::trainer {

namespace {

constexpr std::size_t kThreads = 4;
constexpr std::size_t kLargestBody = 4096;  // nobody has anything to say here
constexpr time_t kSlowestSeconds = 2;

class HttpStatusServer final : public StatusServer {
 public:
  HttpStatusServer(const std::string& address, std::shared_ptr<const StatusReport> first)
      : address_(ParseHostPort(address)), report_(std::move(first)) {
    SetUp();
    Bind();
    thread_ = std::thread([this] { http_.listen_after_bind(); });
    // Until then it could not be stopped.
    while (!http_.is_running()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  ~HttpStatusServer() override {
    http_.stop();
    thread_.join();
  }

  void Publish(std::shared_ptr<const StatusReport> report) override {
    const std::lock_guard lock(mutex_);
    report_ = std::move(report);
  }

  std::string address() const override { return AddressText(address_); }
  bool loopback() const override { return loopback_; }

 private:
  void SetUp() {
    http_.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
    // The library's own choice lets a second program share the port.
    http_.set_socket_options([](int socket) {
      const int yes = 1;
      setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    });
    http_.set_payload_max_length(kLargestBody);
    http_.set_read_timeout(kSlowestSeconds);
    http_.set_write_timeout(kSlowestSeconds);
    http_.set_keep_alive_max_count(1);
    http_.set_default_headers(
        {{"Cache-Control", "no-store"},
         {"X-Content-Type-Options", "nosniff"},
         {"Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'"}});
    Get("/", StatusPage, "text/html; charset=utf-8");
    Get("/metrics", MetricsText, "text/plain; version=0.0.4; charset=utf-8");
    Get("/status.json", StatusJson, "application/json");
    Get(
        "/healthz", [](const StatusReport&) { return std::string("ok\n"); }, "text/plain");
  }

  template <class Text>
  void Get(const char* path, Text text, const char* type) {
    http_.Get(path, [this, text, type](const httplib::Request&, httplib::Response& response) {
      response.set_content(text(*Latest()), type);
    });
  }

  void Bind() {
    const auto endpoint = Resolve(address_).front();
    loopback_ = IsLoopback(endpoint.address());
    const std::string host = endpoint.address().to_string();
    {
      // The library does not say why it cannot bind.
      asio::io_context io;
      asio::ip::tcp::acceptor probe(io);
      Listen(probe, endpoint);
    }
    const int port = address_.port == 0                        ? http_.bind_to_any_port(host)
                     : http_.bind_to_port(host, address_.port) ? address_.port
                                                               : -1;
    if (port <= 0) {
      throw std::invalid_argument(
          fmt::format("{}: nobody can listen there", AddressText(endpoint)));
    }
    address_.port = static_cast<std::uint16_t>(port);
  }

  std::shared_ptr<const StatusReport> Latest() const {
    const std::lock_guard lock(mutex_);
    return report_;
  }

  HostPort address_;
  bool loopback_ = false;
  mutable std::mutex mutex_;
  std::shared_ptr<const StatusReport> report_;
  httplib::Server http_;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<StatusServer> ServeStatus(const std::string& address,
                                          std::shared_ptr<const StatusReport> first) {
  return std::make_unique<HttpStatusServer>(address, std::move(first));
}

}  // namespace spes::trainer
