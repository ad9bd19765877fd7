#include "trainer/runtime/tcp/dial.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "trainer/runtime/tcp/bytes.h"
#include "trainer/runtime/tcp/options.h"
#include "trainer/runtime/tcp/socket_stream.h"
#include "trainer/wire/printable.h"

namespace spes::trainer {

namespace {

constexpr const char* kAsksForTls =
    "the coordinator asks for TLS: --set transport.tls=on, and name its keys with transport.keys";

}  // namespace

Dial::Dial(asio::io_context& io, const Setup& setup, Hello hello, std::function<void(Result)> done)
    : io_(io),
      setup_(setup),
      hello_(std::move(hello)),
      done_(std::move(done)),
      rest_s_(setup.options.handshake_time.count()),
      resolver_(io),
      socket_(io) {}

void Dial::Start() {
  asio::error_code error;
  const auto literal = asio::ip::make_address(setup_.address.host, error);
  if (!error) return OnResolved({{literal, setup_.address.port}});
  share_s_ = rest_s_ / 2;
  resolver_.async_resolve(
      setup_.address.host, std::to_string(setup_.address.port),
      asio::ip::tcp::resolver::numeric_service,
      [self = shared_from_this()](const asio::error_code& failed, const auto& found) {
        if (!self->done_ || self->next_ > 0) return;
        if (failed && self->setup_.known) return self->OnResolved({*self->setup_.known});
        if (failed) {
          return self->Fail(fmt::format("there is no host of that name: {}", failed.message()));
        }
        std::vector<asio::ip::tcp::endpoint> endpoints;
        for (const auto& entry : found) endpoints.push_back(entry.endpoint());
        self->OnResolved(std::move(endpoints));
      });
}

void Dial::OnResolved(std::vector<asio::ip::tcp::endpoint> endpoints) {
  endpoints_ = std::move(endpoints);
  std::stable_partition(endpoints_.begin(), endpoints_.end(),
                        [this](const auto& each) { return each == setup_.known; });
  TryNext();
}

void Dial::TryNext() {
  // One that swallows what is sent to it leaves time for the others.
  share_s_ = rest_s_ / static_cast<double>(endpoints_.size() - next_);
  const auto endpoint = endpoints_[next_++];
  if (!setup_.tls && !IsLoopback(endpoint.address())) {
    return Fail("it is no loopback address, so it needs TLS: --set transport.tls=on, and keys",
                true);
  }
  asio::error_code error;
  socket_ = asio::ip::tcp::socket(io_);
  socket_.open(endpoint.protocol(), error);
  if (error) return Fail(error.message());
  SetUpSocket(socket_.native_handle(), setup_.options.congestion,
              Milliseconds(setup_.options.dead_after));
  socket_.async_connect(endpoint,
                        [self = shared_from_this(), tried = next_](const asio::error_code& failed) {
                          if (!self->done_ || self->next_ != tried) return;
                          if (failed) return self->Fail(failed.message());
                          self->OnConnected();
                        });
}

void Dial::OnConnected() {
  try {
    auto stream = std::make_unique<SocketStream>(std::move(socket_));
    if (setup_.tls) stream->UseTls(*setup_.tls, false, setup_.address.host);
    StartOver(std::move(stream));
  } catch (const StreamError& error) {
    return Fail(error.what(), error.permanent());
  }
}

void Dial::StartOver(std::unique_ptr<Stream> stream) {
  connection_ = std::make_shared<Connection>(io_, std::move(stream), shared_from_this());
  connection_->Start();
}

void Dial::OnOpen(Connection& connection) {
  hello_.nonce = RandomNonce();
  hello_.clock_us = WallClockMicroseconds();
  said_.hello = Encode(hello_);
  if (connection.tls()) said_.channel = connection.tls()->Channel();
  connection.Put(FrameType::kHello, 0, said_.hello);
}

std::optional<std::uint64_t> Dial::Most(const Connection&, FrameType type) const {
  switch (type) {
    case FrameType::kChallenge:
    case FrameType::kWelcome:
      return kMaxHandshakeBytes;
    case FrameType::kRefuse:
      return kMaxHandshakeBytes + kMaxScenarioBytes;
    default:
      return std::nullopt;
  }
}

void Dial::OnFrame(Connection& connection, const FrameHeader& header, std::string_view payload) {
  if (header.type == FrameType::kRefuse) return OnRefuse(DecodeRefuse(payload));
  if (header.type == FrameType::kChallenge) {
    DecodeChallenge(payload);
    if (!said_.challenge.empty()) throw WireError("a second challenge");
    said_.challenge = std::string(payload);
    return connection.Put(FrameType::kProof, 0, Encode(Proof{NodeProof(setup_.token, said_)}));
  }
  const Welcome welcome = DecodeWelcome(payload);
  const bool proven =
      !said_.challenge.empty() && SameDigest(welcome.digest, CoordinatorProof(setup_.token, said_));
  if (!setup_.token.empty() && !proven) {
    return Fail("who answers there does not have the token: it is not the coordinator", true);
  }
  const bool other = hello_.node != kAnyNode && !hello_.or_any && welcome.node != hello_.node;
  if (other || (setup_.nodes > 0 && welcome.node >= setup_.nodes)) {
    return Fail(fmt::format("it gives node {}, which was not asked for", welcome.node));
  }
  Finish(LetIn{std::exchange(connection_, nullptr), welcome,
               next_ > 0 ? std::optional(endpoints_[next_ - 1]) : std::nullopt});
}

void Dial::OnRefuse(const Refuse& refuse) {
  switch (refuse.code) {
    case RefuseCode::kNotLetIn:
      return Fail(setup_.token.empty() ? "not let in: the coordinator asks for a token"
                                       : "not let in: the token is not the coordinator's",
                  true, refuse.code);
    case RefuseCode::kScenario: {
      const TcpScenario& own = setup_.scenario;
      std::string difference =
          own.difference ? own.difference(refuse.text, own.text) : std::string();
      // The other side's text may be in it.
      difference = Printable(difference.substr(0, kMaxReason));
      connection_->Put(FrameType::kRefuse, 0,
                       Encode(Refuse{RefuseCode::kScenario, true, difference}));
      return Fail("the scenario is not the coordinator's" +
                      (difference.empty() ? difference : ": " + difference),
                  true, refuse.code);
    }
    default:
      return Fail(refuse.text, refuse.permanent, refuse.code);
  }
}

void Dial::OnWireError(Connection& connection, const std::string& why) {
  const bool permanent = connection.other_version() || connection.other_speaks_tls();
  Fail(connection.other_speaks_tls() ? kAsksForTls : why, permanent);
}

void Dial::OnClosed(Connection& connection, const std::string& why, bool permanent) {
  if (connection.other_speaks_tls()) return Fail(kAsksForTls, true);
  const bool setting_up = setup_.tls && said_.hello.empty() && !permanent;
  Fail(setting_up
           ? "no TLS comes about: " + why + " (has the coordinator TLS? transport.tls is on here)"
           : why,
       permanent);
}

// `code`: the coordinator has refused. Whoever has not even answered to the hello may be somebody
// else, and the coordinator be at another address.
void Dial::Fail(const std::string& why, bool permanent, std::optional<RefuseCode> code) {
  Failure failure{AddressText(setup_.address) + ": " + why, permanent, code,
                  code ? connection_ : nullptr};
  if (code || !said_.challenge.empty()) return Finish(std::move(failure));
  if (!failure_ || permanent || !failure_->permanent) failure_ = std::move(failure);
  if (next_ == endpoints_.size() || rest_s_ <= 0) return Finish(*failure_);
  const auto connection = std::exchange(connection_, nullptr);
  if (connection && connection->open()) connection->Close("", false);
  said_ = {};
  TryNext();
}

void Dial::Finish(Result result) {
  const auto self = shared_from_this();
  const auto done = std::exchange(done_, nullptr);
  Abandon();
  if (done) done(std::move(result));
}

void Dial::Abandon() {
  done_ = nullptr;
  resolver_.cancel();
  asio::error_code error;
  socket_.close(error);
  if (const auto connection = std::exchange(connection_, nullptr)) connection->FinishAndClose();
}

void Dial::Tick(double passed) {
  if (!done_) return;
  rest_s_ -= passed;
  share_s_ -= passed;
  if (rest_s_ <= 0) return Fail(NoAnswer());
  if (share_s_ > 0) return;
  if (next_ == 0) {
    if (setup_.known) OnResolved({*setup_.known});
  } else if (next_ < endpoints_.size() && said_.challenge.empty()) {
    Fail(NoAnswer());
  }
}

std::string Dial::NoAnswer() const {
  return fmt::format("no answer within {:g} s", setup_.options.handshake_time.count());
}

}  // namespace spes::trainer
