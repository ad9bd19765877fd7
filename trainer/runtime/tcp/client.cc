#include "trainer/runtime/tcp/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <utility>

#include "trainer/runtime/tcp/options.h"

namespace spes::trainer {

namespace {

constexpr double kFirstRetry = 0.1, kLastRetry = 5;  // s
constexpr double kSteady = 2;                        // s after which earlier failures are forgotten
constexpr Seconds kForever{1e9};

}  // namespace

std::unique_ptr<TcpClient> JoinTcp(TcpJoinConfig config, std::shared_ptr<const BlockTable> table,
                                   ComputePool& pool, analysis::Recorder& recorder,
                                   const std::atomic<bool>& stop,
                                   const std::function<void(const std::string& why)>& waiting) {
  auto client = std::make_unique<Client>(std::move(config), std::move(table), pool, recorder);
  if (!client->Join(stop, waiting)) return nullptr;
  return client;
}

Client::Client(TcpJoinConfig config, std::shared_ptr<const BlockTable> table, ComputePool& pool,
               analysis::Recorder& recorder)
    : OnLoop(pool),
      config_(std::move(config)),
      table_(std::move(table)),
      recorder_(recorder),
      broken_(recorder),
      node_(config_.node.value_or(kAnyNode)),
      retry_(loop_.io()) {
  CheckOptions(config_.options);
  const TcpSecurity& security = config_.security;
  setup_ = {ParseHostPort(config_.address),
            security.tls ? TlsContext::OfNode(security) : nullptr,
            security.token,
            config_.options,
            config_.scenario,
            config_.nodes};
  loop_.OnTick([this](double passed) { Tick(passed); });
}

Client::~Client() {
  closing_ = true;
  if (dial_) dial_->Abandon();
  if (session_) session_->End(std::nullopt);
}

bool Client::Join(const std::atomic<bool>& stop,
                  const std::function<void(const std::string& why)>& waiting) {
  waiting_ = waiting;
  Maintain();
  loop_.RunUntil([&] { return joined_ || refused_ || stop; }, kForever);
  waiting_ = nullptr;
  if (refused_) {
    if (const auto connection = refused_->last_words) {
      loop_.RunUntil([&] { return connection->closed(); }, kFarewell);
    }
    throw std::invalid_argument(refused_->why);
  }
  return joined_;
}

void Client::Connect(OnMessage on_message, std::function<void(const std::string& why)> renewed) {
  on_message_ = std::move(on_message);
  renewed_ = std::move(renewed);
}

// Dialling.

std::optional<std::pair<ConnectionRole, int>> Client::Missing() const {
  const auto missing = [&](ConnectionRole role, int index) {
    return !session_ || !session_->Has(role, index);
  };
  if (missing(ConnectionRole::kControl, 0)) return std::pair(ConnectionRole::kControl, 0);
  // Messages first, then the means to see whether they can still cross.
  if (missing(ConnectionRole::kBulk, 0)) return std::pair(ConnectionRole::kBulk, 0);
  if (missing(ConnectionRole::kBeat, 0)) return std::pair(ConnectionRole::kBeat, 0);
  for (int i = 1; i < config_.options.streams; ++i) {
    if (missing(ConnectionRole::kBulk, i)) return std::pair(ConnectionRole::kBulk, i);
  }
  return std::nullopt;
}

void Client::Maintain() {
  if (closing_ || dial_ || waits_ || refused_) return;
  const auto missing = Missing();
  if (!missing) return;
  if (!trouble_) return DialFor(missing->first, missing->second);
  const int steps = std::min(failures_ + young_ - 1, 10);
  const double most = std::min(kLastRetry, kFirstRetry * std::exp2(steps));
  const double wait = std::uniform_real_distribution(most / 2, most)(random_);
  waits_ = true;
  retry_.expires_after(sim::FromSeconds(wait));
  retry_.async_wait([this](const asio::error_code& error) {
    if (error) return;
    waits_ = false;
    if (const auto now = Missing(); now && !closing_) DialFor(now->first, now->second);
  });
}

void Client::DialFor(ConnectionRole role, int index) {
  Hello hello;
  hello.role = role;
  hello.index = static_cast<std::uint16_t>(index);
  if (session_) hello.session = session_->id();
  hello.node = node_;
  if (node_ == kAnyNode && config_.preferred) {
    hello.node = *config_.preferred;
    hello.or_any = true;
  }
  hello.chunk_bytes = static_cast<std::uint32_t>(config_.options.chunk_bytes);
  hello.beat_ms = static_cast<std::uint32_t>(Milliseconds(config_.options.beat_every).count());
  hello.scenario_hash = config_.scenario.hash;
  dial_ = std::make_shared<Dial>(
      loop_.io(), setup_, std::move(hello),
      [this, role, index](Dial::Result result) { OnDialled(role, index, std::move(result)); });
  dial_->Start();
}

void Client::OnDialled(ConnectionRole role, int index, Dial::Result result) {
  const auto dial = std::exchange(dial_, nullptr);
  if (const auto* failure = std::get_if<Dial::Failure>(&result)) {
    OnFailure(*failure);
  } else {
    auto& in = std::get<Dial::LetIn>(result);
    const bool control = role == ConnectionRole::kControl;
    // It may have ended meanwhile.
    if (session_ ? in.welcome.session != session_->id() : !control) {
      in.connection->Close("", false);
      OnYoungEnd();
      return Maintain();
    }
    setup_.known = in.endpoint;
    trouble_ = false;
    failures_ = 0;
    logged_.clear();
    failure_.clear();
    if (!session_) {
      const bool first = !joined_;
      Begin(in.welcome);
      if (first && !config_.security.certificate.empty() &&
          !in.connection->tls()->asked_for_certificate()) {
        Event("certificate",
              "transport.mutual is true here, but the coordinator asks for no certificates");
      }
    } else if (control) {
      Event("reconnected", in.connection->address());
    }
    session_->Attach(std::move(in.connection), role, index);
  }
  Maintain();
}

void Client::OnFailure(const Dial::Failure& failure) {
  if (failure.code == RefuseCode::kUnknownSession) {
    OnYoungEnd();
    return DropSession(failure.why, std::nullopt);
  }
  trouble_ = true;
  ++failures_;
  failure_ = failure.why;
  if (!joined_) {
    if (failure.permanent) {
      refused_ = failure;
    } else if (waiting_) {
      waiting_(failure.why);
    }
    return;
  }
  // Whoever can answer once in the coordinator's place must not end the node, nor must a clock, of
  // either side, that was right before and will be set again.
  const bool passing = !failure.code || failure.code == RefuseCode::kClocks;
  if (failure.permanent && !passing) throw std::runtime_error(failure.why);
  if (std::exchange(logged_, failure.why) != failure.why) Event("unreachable", failure.why);
}

// Another one at once could go on like that without end.
void Client::OnYoungEnd() {
  trouble_ = true;
  ++young_;
}

// A new session.
void Client::Begin(const Welcome& welcome) {
  node_ = welcome.node;
  loop_.SetNow(sim::Time(welcome.now_ns));
  Session::Setup setup;
  setup.id = welcome.session;
  setup.node = kCoordinator;
  setup.chunk_bytes = config_.options.chunk_bytes;
  setup.other_chunk_bytes = welcome.chunk_bytes;
  setup.beat_every_s = config_.options.beat_every.count();
  setup.other_beat_s = 1e-3 * welcome.beat_ms;
  setup.dead_after_s = config_.options.dead_after.count();
  setup.give_up_after_s = config_.options.give_up_after.count();
  setup.limits = config_.options.limits;
  session_ = std::make_shared<Session>(std::move(setup), table_, loop_, *this);
  if (!std::exchange(joined_, true)) return;
  Event("renewed", why_);
  renewing_ = true;
  loop_.Call([this, session = session_, why = why_] {
    if (session != session_) return;  // not for long: it is told of the next one
    renewing_ = false;
    if (renewed_) renewed_(why);
  });
}

void Client::DropSession(const std::string& why, const std::optional<Bye>& bye) {
  why_ = why;
  if (const auto session = std::exchange(session_, nullptr)) {
    session->End(bye);
    const TcpNodeStatus now = session->Status();
    past_.AddCounts(now);
  }
  Maintain();
}

void Client::Tick(double passed) {
  broken_.Tick(passed);
  if (const auto dial = dial_) dial->Tick(passed);
  if (session_) session_->Tick(passed);
  whole_s_ = Missing() ? 0 : whole_s_ + passed;
  if (whole_s_ >= kSteady) young_ = 0;
  const bool alone = !session_ || !session_->connected();
  alone_s_ = alone ? alone_s_ + passed : 0;
  const double most = config_.options.dial_for.count();
  if (most == 0 || alone_s_ < most || refused_ || closing_) return;
  throw std::runtime_error(fmt::format(
      "the coordinator was not reached for {:g} s, as long as transport.dial_for says: {}", most,
      failure_.empty() ? AddressText(setup_.address) + ": no answer yet" : failure_));
}

// The session.

void Client::OnArrival(Session&, Message message) {
  loop_.Call([this, message = std::make_shared<const Message>(std::move(message))] {
    if (on_message_) on_message_(kCoordinator, *message);
  });
}

void Client::OnConnectionClosed(Session& session, const Connection& connection, ConnectionRole role,
                                const std::string& why) {
  broken_.Add(session, {sim::ToSeconds(Now()), node_, "disconnected",
                        fmt::format("{} connection: {}", Name(role), why)});
  if (connection.age_s() < kSteady) OnYoungEnd();
  Maintain();
}

void Client::OnBye(Session& session, const Bye& bye) {
  if (!bye.session_over) return;
  broken_.Forget(session);
  OnYoungEnd();
  DropSession(bye.reason, std::nullopt);
}

void Client::OnBroken(Session&, const std::string& why) {
  Event("dropped", why);
  OnYoungEnd();
  DropSession(why, Bye{true, why});
}

void Client::OnNoRoom(Session& session, const std::string& why) { OnBroken(session, why); }

void Client::Send(NodeId, Message message, std::int64_t, std::function<void()> delivered) {
  OutgoingMessage out = EncodeMessage(std::move(message), *table_);
  // What is said to a coordinator that has forgotten this node arrives nowhere.
  if (session_ && !renewing_) session_->Send(std::move(out), std::move(delivered));
}

void Client::Close(Seconds d) {
  config_.options.dial_for = Seconds(0);  // what is over does not fail any more
  // Once the other side has ended the session nothing is left to wait for.
  loop_.RunUntil([this] { return !session_ || renewing_ || session_->idle(); }, d);
  SayGoodbye("it has closed");
}

void Client::Fail(const std::string& why) {
  on_message_ = nullptr;  // nobody is left to hear of anything
  renewed_ = nullptr;
  try {
    SayGoodbye("it has failed: " + why);
  } catch (const std::exception&) {
    // What else was under way and fails now is not why the node ends.
  }
}

void Client::SayGoodbye(const std::string& why) {
  closing_ = true;
  if (dial_) std::exchange(dial_, nullptr)->Abandon();
  if (!session_) return;
  const auto open = session_->connections();
  session_->End(Bye{true, why});
  loop_.RunUntil(
      [&] { return std::ranges::all_of(open, [](const auto& each) { return each->closed(); }); },
      kFarewell);
}

TcpNodeStatus Client::StatusOf(NodeId) const {
  TcpNodeStatus status = past_;
  if (!session_) return status;
  TcpNodeStatus now = session_->Status();
  now.AddCounts(status);
  return now;
}

void Client::Event(const std::string& kind, const std::string& detail) {
  recorder_.Record(analysis::EventRecord{sim::ToSeconds(Now()), node_, kind, detail});
}

}  // namespace spes::trainer
