#include "trainer/runtime/tcp/status_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>

#include "trainer/runtime/tcp/address.h"
#include "trainer/runtime/tcp/asio.h"
#include "trainer/runtime/tcp/listen.h"
#include "trainer/runtime/tcp/socket_stream.h"
#include "trainer/runtime/tcp/status_text.h"

namespace spes::trainer {

namespace {

constexpr std::size_t kLongestHead = 4096;  // nobody has much to ask here
constexpr std::chrono::seconds kLongestVisit{5};
constexpr int kMostVisits = 32;

constexpr std::string_view kHeaders =
    "Cache-Control: no-store\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'\r\n"
    "Allow: GET, HEAD\r\n"
    "Connection: close\r\n";

// An HTTP answer (RFC 9112). `head`: without the content, whose length it has.
std::string Answer(std::string_view status, std::string_view type, const std::string& content,
                   bool head = false) {
  return fmt::format("HTTP/1.1 {}\r\n{}Content-Type: {}\r\nContent-Length: {}\r\n\r\n{}", status,
                     kHeaders, type, content.size(), head ? "" : content);
}

std::string Complaint(std::string_view status) {
  return Answer(status, "text/plain", std::string(status) + "\n");
}

// To a request with this first line.
std::string AnswerTo(std::string_view line, const StatusReport& report) {
  const auto method_end = line.find(' ');
  const auto target_end = line.rfind(' ');
  if (target_end == method_end || !line.substr(target_end + 1).starts_with("HTTP/1.")) {
    return Complaint("400 Bad Request");
  }
  const std::string_view method = line.substr(0, method_end);
  if (method != "GET" && method != "HEAD") return Complaint("405 Method Not Allowed");
  std::string_view path = line.substr(method_end + 1, target_end - method_end - 1);
  path = path.substr(0, path.find('?'));
  const bool head = method == "HEAD";
  if (path == "/") return Answer("200 OK", "text/html; charset=utf-8", StatusPage(report), head);
  if (path == "/metrics") {
    return Answer("200 OK", "text/plain; version=0.0.4; charset=utf-8", MetricsText(report), head);
  }
  if (path == "/status.json") return Answer("200 OK", "application/json", StatusJson(report), head);
  if (path == "/healthz") {
    const double age_s = report.age_s();
    if (age_s <= kStale.count()) return Answer("200 OK", "text/plain", "ok\n", head);
    return Answer("503 Service Unavailable", "text/plain",
                  fmt::format("the run has reported nothing for {:.0f} s\n", age_s), head);
  }
  return Complaint("404 Not Found");
}

// One connection: one request, one answer, and no more than kLongestVisit for both.
class Visit : public std::enable_shared_from_this<Visit> {
 public:
  using Latest = std::function<std::shared_ptr<const StatusReport>()>;

  Visit(asio::ip::tcp::socket socket, Latest latest)
      : socket_(std::move(socket)), over_(socket_.get_executor()), latest_(std::move(latest)) {}

  void Start() {
    over_.expires_after(kLongestVisit);
    over_.async_wait([self = shared_from_this()](const asio::error_code& error) {
      asio::error_code ignored;
      if (!error) self->socket_.close(ignored);
    });
    asio::async_read_until(socket_, request_, "\r\n\r\n",
                           [self = shared_from_this()](const asio::error_code& error, std::size_t) {
                             self->OnHead(error);
                           });
  }

 private:
  void OnHead(const asio::error_code& error) {
    if (error == asio::error::not_found) {
      answer_ = Complaint("431 Request Header Fields Too Large");
    } else if (error) {
      return End();
    } else {
      const std::string head(asio::buffers_begin(request_.data()),
                             asio::buffers_end(request_.data()));
      answer_ = AnswerTo(std::string_view(head).substr(0, head.find("\r\n")), *latest_());
    }
    asio::async_write(socket_, asio::buffer(answer_),
                      [self = shared_from_this()](const asio::error_code& failed, std::size_t) {
                        if (failed) return self->End();
                        asio::error_code ignored;
                        self->socket_.shutdown(asio::socket_base::shutdown_send, ignored);
                        self->Discard();
                      });
  }
  // Until the other side closes: what it still says would otherwise reset what was answered.
  void Discard() {
    socket_.async_read_some(
        asio::buffer(scratch_),
        [self = shared_from_this()](const asio::error_code& error, std::size_t) {
          return error ? self->End() : self->Discard();
        });
  }
  void End() { over_.cancel(); }

  asio::ip::tcp::socket socket_;
  asio::steady_timer over_;
  Latest latest_;
  asio::streambuf request_{kLongestHead};
  std::string answer_;
  std::array<char, 4096> scratch_;
};

class HttpStatusServer final : public StatusServer {
 public:
  HttpStatusServer(const std::string& address, std::shared_ptr<const StatusReport> first)
      : address_(ParseHostPort(address)),
        report_(std::move(first)),
        acceptor_(io_),
        accept_again_(io_) {
    Listen(acceptor_, Resolve(address_));
    const auto endpoint = acceptor_.local_endpoint();
    loopback_ = IsLoopback(endpoint.address());
    address_.port = endpoint.port();
    Accept();
    thread_ = std::thread([this] { Run(); });
  }

  // Visitors are not waited for.
  ~HttpStatusServer() override {
    io_.stop();
    thread_.join();
  }

  void Publish(std::shared_ptr<const StatusReport> report) override {
    const std::lock_guard lock(mutex_);
    report_ = std::move(report);
  }

  std::string address() const override { return AddressText(address_); }
  bool loopback() const override { return loopback_; }

 private:
  void Run() {
    while (!io_.stopped()) {
      try {
        io_.run();
      } catch (const std::exception&) {
        // One answer could not be made: the run does not depend on it.
      }
    }
  }

  void Accept() {
    acceptor_.async_accept([this](const asio::error_code& error, asio::ip::tcp::socket socket) {
      if (error) {  // out of descriptors, most likely
        accept_again_.expires_after(std::chrono::milliseconds(100));
        accept_again_.async_wait([this](const asio::error_code&) { Accept(); });
        return;
      }
      Accept();
      std::erase_if(visits_, [](const auto& visit) { return visit.expired(); });
      if (std::ssize(visits_) >= kMostVisits) return;
      const auto visit = std::make_shared<Visit>(std::move(socket), [this] { return Newest(); });
      visits_.push_back(visit);
      visit->Start();
    });
  }

  std::shared_ptr<const StatusReport> Newest() const {
    const std::lock_guard lock(mutex_);
    return report_;
  }

  HostPort address_;
  bool loopback_ = false;
  mutable std::mutex mutex_;
  std::shared_ptr<const StatusReport> report_;
  std::vector<std::weak_ptr<Visit>> visits_;
  asio::io_context io_;
  asio::ip::tcp::acceptor acceptor_;
  asio::steady_timer accept_again_;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<StatusServer> ServeStatus(const std::string& address,
                                          std::shared_ptr<const StatusReport> first) {
  return std::make_unique<HttpStatusServer>(address, std::move(first));
}

}  // namespace spes::trainer
