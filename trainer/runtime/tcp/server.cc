#include "trainer/runtime/tcp/server.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <utility>

#include "trainer/runtime/flow_record.h"
#include "trainer/runtime/tcp/listen.h"
#include "trainer/runtime/tcp/options.h"
#include "trainer/runtime/tcp/socket_stream.h"

namespace spes::trainer {

namespace {

constexpr double kLeavingSeconds = 5;
// After which a node may try again whose upload there was no room for.
constexpr sim::Time kNoRoomRest = std::chrono::seconds(5);

TcpServeConfig Checked(TcpServeConfig config) {
  CheckOptions(config.options);
  if (config.nodes < 1) {
    throw std::invalid_argument(
        fmt::format("a run of {} nodes: it needs at least one", config.nodes));
  }
  return config;
}

}  // namespace

std::unique_ptr<TcpServer> ServeTcp(TcpServeConfig config, std::shared_ptr<const BlockTable> table,
                                    ComputePool& pool, analysis::Recorder& recorder) {
  return std::make_unique<Server>(std::move(config), std::move(table), pool, recorder);
}

Server::Server(TcpServeConfig config, std::shared_ptr<const BlockTable> table, ComputePool& pool,
               analysis::Recorder& recorder)
    : OnLoop(pool),
      config_(Checked(std::move(config))),
      address_(ParseHostPort(config_.address)),
      table_(std::move(table)),
      recorder_(recorder),
      refusals_(recorder),
      broken_(recorder),
      tls_(config_.security.tls ? TlsContext::OfCoordinator(config_.security) : nullptr),
      memory_(config_.options.uploads_in_memory, config_.options.spool),
      acceptor_(loop_.io()),
      accept_again_(loop_.io()),
      roster_({config_.nodes, config_.taken, config_.resumed,
               config_.options.clock_difference.count(), config_.options.give_up_after.count()},
              config_.scenario) {
  Bind();
  loop_.OnTick([this](double passed) { Tick(passed); });
  loop_.BetweenCalls([this] { memory_.Trim(); });
  Accept();
}

Server::~Server() {
  gates_.Shut();
  for (const auto& session : roster_.all()) EndSession(session, "", false, std::nullopt);
  for (const auto& [node, leaving] : leaving_) leaving.session->End(std::nullopt);
}

void Server::Bind() {
  const auto endpoints = Resolve(address_);
  const TcpSecurity& security = config_.security;
  const auto loopback = [](const auto& each) { return IsLoopback(each.address()); };
  if (!std::ranges::all_of(endpoints, loopback)) {
    if (!security.tls) {
      throw std::invalid_argument(fmt::format(
          "{} is no loopback address, others can reach it: it needs TLS (transport.tls)",
          config_.address));
    }
    if (security.token.empty() && !security.ask_certificate) {
      throw std::invalid_argument(
          fmt::format("{} is no loopback address, others can reach it: ask for a token or for "
                      "certificates (transport.keys)",
                      config_.address));
    }
  }
  Listen(acceptor_, endpoints);
  acceptor_.non_blocking(true);
  address_.port = acceptor_.local_endpoint().port();
}

std::string Server::address() const { return AddressText(address_); }

void Server::Connect(OnMessage on_message, OnLost lost) {
  on_message_ = std::move(on_message);
  lost_ = std::move(lost);
}

// Letting in.

void Server::Accept() {
  acceptor_.async_accept([this](const asio::error_code& error, asio::ip::tcp::socket socket) {
    if (error == asio::error::operation_aborted) return;
    if (!error) {
      OnAccept(std::move(socket));
      return Accept();
    }
    // Out of descriptors, most likely: in a moment there may be some.
    refusals_.Record(Now(), Refusals::Kind::kFlood, kAnyNode, "a connection", error.message());
    accept_again_.expires_after(std::chrono::milliseconds(100));
    accept_again_.async_wait([this](const asio::error_code& cancelled) {
      if (!cancelled) Accept();
    });
  });
}

void Server::OnAccept(asio::ip::tcp::socket socket) {
  try {
    SetUpSocket(socket.native_handle(), config_.options.congestion,
                Milliseconds(config_.options.dead_after));
    const std::string network = NetworkOf(socket.remote_endpoint().address());
    auto stream = std::make_unique<SocketStream>(std::move(socket));
    const std::string host = stream->host();
    if (!gates_.HasRoom(host, network)) {
      return refusals_.Record(Now(), Refusals::Kind::kFlood, kAnyNode, host, std::string(kTooMany));
    }
    if (tls_) stream->UseTls(*tls_, true, "");
    auto gate = std::make_shared<Gate>(*this, config_.security.token,
                                       config_.options.handshake_time.count());
    gate->Open(std::make_shared<Connection>(loop_.io(), std::move(stream), gate));
    gates_.Add(std::move(gate), network);
  } catch (const std::runtime_error&) {
    // It was gone before it could be looked at.
  }
}

void Server::OnTurnedAway(const Connection& connection, Refusals::Kind kind, NodeId node,
                          const std::string& why) {
  refusals_.Record(Now(), kind, node, connection.host(), why);
}

int Server::ConnectionsFrom(const std::string& host) const {
  std::ptrdiff_t count = 0;
  const auto add = [&](const Session& session) {
    count += std::ranges::count_if(session.connections(),
                                   [&](const auto& each) { return each->host() == host; });
  };
  for (const auto& session : roster_.all()) add(*session);
  for (const auto& [node, leaving] : leaving_) add(*leaving.session);
  return static_cast<int>(count);
}

std::variant<Gate::LetIn, std::monostate, Refuse> Server::Judge(const Connection& connection,
                                                                Request& request) {
  const int most = config_.options.connections_per_address;
  if (ConnectionsFrom(connection.host()) >= most) {
    return Refuse{RefuseCode::kTooMany, false,
                  fmt::format("the coordinator takes {} connections from one address", most)};
  }
  if (config_.security.ask_certificate && !request.certified) {
    return Refuse{RefuseCode::kNoSuchNode, true,
                  "the certificate is for no node: its common name must be \"spes-sim node K\""};
  }
  std::shared_ptr<Session> session;
  if (request.hello.session != kNoSession) {
    auto found = roster_.Find(request);
    if (auto* refuse = std::get_if<Refuse>(&found)) return std::move(*refuse);
    session = std::get<std::shared_ptr<Session>>(std::move(found));
    if (request.hello.role == ConnectionRole::kControl) {
      Event(session->node(), "reconnected", connection.address());
    }
  } else {
    auto given = roster_.Judge(request, WallClockMicroseconds());
    if (auto* refuse = std::get_if<Refuse>(&given)) return std::move(*refuse);
    if (std::holds_alternative<std::monostate>(given)) return std::monostate();
    if (const auto found = no_room_.find(std::get<NodeId>(given)); found != no_room_.end()) {
      if (Now() - found->second < kNoRoomRest) {
        return Refuse{
            RefuseCode::kTooMany, false,
            "the coordinator has no room for what the node sends; it may have in a while"};
      }
      no_room_.erase(found);
    }
    session = Begin(std::get<NodeId>(given), request.hello);
    Event(session->node(), "connected", connection.address());
  }
  Welcome welcome;
  welcome.session = session->id();
  welcome.node = session->node();
  welcome.now_ns = Now().count();
  welcome.chunk_bytes = static_cast<std::uint32_t>(config_.options.chunk_bytes);
  welcome.beat_ms = static_cast<std::uint32_t>(Milliseconds(config_.options.beat_every).count());
  return Gate::LetIn{std::move(session), welcome};
}

std::shared_ptr<Session> Server::Begin(NodeId node, const Hello& hello) {
  if (const auto old = roster_.Of(node)) EndSession(old, "began anew", true, std::nullopt);
  Session::Setup setup;
  FillRandom(setup.id);
  setup.node = node;
  setup.coordinator = true;
  setup.chunk_bytes = config_.options.chunk_bytes;
  setup.other_chunk_bytes = hello.chunk_bytes;
  setup.beat_every_s = config_.options.beat_every.count();
  setup.other_beat_s = 1e-3 * hello.beat_ms;
  setup.dead_after_s = config_.options.dead_after.count();
  setup.give_up_after_s = config_.options.give_up_after.count();
  setup.limits = config_.options.limits;
  setup.memory = [this] { return memory_.ForUpload(); };
  auto session = std::make_shared<Session>(std::move(setup), table_, loop_, *this);
  roster_.Add(session);
  return session;
}

// Sessions.

// By value: whoever has it may end in here.
void Server::EndSession(std::shared_ptr<Session> session,  // NOLINT
                        const std::string& why, bool lost, const std::optional<Bye>& bye) {
  if (session->ended()) return;
  const NodeId node = session->node();
  roster_.Remove(*session);
  session->End(bye);
  const TcpNodeStatus now = session->Status();
  TcpNodeStatus& past = status_[node];
  past.AddCounts(now);
  if (lost) {
    loop_.Call([this, node, why] {
      if (lost_) lost_(node, why);
    });
  }
}

void Server::OnArrival(Session& session, Message message) {
  const NodeId node = session.node();
  if (auto* offer = std::get_if<Offer>(&message)) {
    for (analysis::StepRecord& step : offer->steps) {
      step.node = node;
      step.round = offer->span.round;
    }
  }
  const bool leaves = std::holds_alternative<Leave>(message);
  loop_.Call([this, node, message = std::make_shared<const Message>(std::move(message))] {
    if (on_message_) on_message_(node, *message);
  });
  const auto leaving = roster_.Of(node);
  if (!leaves || leaving.get() != &session) return;
  roster_.Remove(session);
  broken_.Forget(session);
  Leaving& place = leaving_[node];  // one for each node: there is no end of new sessions
  if (place.session) EndSession(place.session, "", false, std::nullopt);
  place = {leaving};
}

void Server::OnTransfer(Session& session, const TransferReport& report) {
  // Messages without parameters have no row of their own: their time is a round trip.
  sim::FlowResult flow;
  flow.id = ++last_flow_;
  flow.start = report.start;
  flow.end = std::max(report.start, report.end);
  flow.delivered_bytes = report.bytes;
  flow.wire_bytes = report.figures.wire_bytes;
  flow.retransmitted_bytes = report.figures.retransmitted_bytes;
  flow.retransmissions = report.figures.retransmissions;
  flow.dropped_packets = report.figures.drops;
  const auto measured = [](double s) {
    return s >= 0 ? std::optional(sim::FromSeconds(s)) : std::nullopt;
  };
  flow.rtt_min = measured(report.figures.rtt_min_s);
  flow.rtt_mean = measured(report.figures.rtt_mean_s);
  flow.outcome = report.done ? sim::FlowOutcome::kDone : sim::FlowOutcome::kFailed;
  recorder_.Record(MakeFlowRecord(flow, report.sent ? kCoordinator : session.node(),
                                  report.sent ? session.node() : kCoordinator, report.info.message,
                                  report.info.round));
}

void Server::OnConnectionClosed(Session& session, const Connection& connection, ConnectionRole role,
                                const std::string& why) {
  if (roster_.Of(session.node()).get() != &session) return;  // it leaves
  broken_.Add(session,
              {sim::ToSeconds(Now()), session.node(), "disconnected",
               fmt::format("{} connection of {}: {}", Name(role), connection.address(), why)});
}

void Server::OnBye(Session& session, const Bye& bye) {
  if (!bye.session_over) return;
  broken_.Forget(session);
  const bool lost = roster_.Of(session.node()).get() == &session;  // or it has said so before
  EndSession(session.shared_from_this(), bye.reason, lost, std::nullopt);
}

void Server::OnBroken(Session& session, const std::string& why) {
  const bool lost = roster_.Of(session.node()).get() == &session;
  Event(session.node(), "dropped", why);
  EndSession(session.shared_from_this(), why, lost, Bye{true, why});
}

void Server::OnNoRoom(Session& session, const std::string& why) {
  const bool lost = roster_.Of(session.node()).get() == &session;
  Event(session.node(), "no room", why);
  no_room_[session.node()] = Now();
  // Where the coordinator keeps things is not for others.
  EndSession(session.shared_from_this(), why, lost,
             Bye{true, "the coordinator has no room for what the node sends"});
}

void Server::Ban(NodeId node, const std::string& reason) {
  roster_.Ban(node, reason);
  if (const auto session = roster_.Of(node)) EndSession(session, reason, false, Bye{true, reason});
}

void Server::Tick(double passed) {
  gates_.Tick(passed);
  roster_.Tick(passed);
  broken_.Tick(passed);
  for (const auto& session : roster_.all()) {
    session->Tick(passed);
    if (session->ended() || session->away_s() <= config_.options.give_up_after.count()) continue;
    EndSession(session, fmt::format("nothing has been heard of it for {:.3g} s", session->away_s()),
               true, Bye{true, "the coordinator has given this node up"});
  }
  for (auto& [node, leaving] : leaving_) {
    leaving.session->Tick(passed);
    leaving.since_s += passed;
    const bool gone = !leaving.session->Has(ConnectionRole::kControl, 0);
    if (gone || leaving.since_s > kLeavingSeconds) EndSession(leaving.session, "", false, {});
  }
  std::erase_if(leaving_, [](const auto& each) { return each.second.session->ended(); });
}

void Server::Send(NodeId to, Message message, std::int64_t, std::function<void()> delivered) {
  const auto session = roster_.Of(to);
  if (session) {
    return session->Send(EncodeMessage(std::move(message), *table_), std::move(delivered));
  }
  loop_.Call([this, to] {
    if (lost_) lost_(to, fmt::format("node {} is not connected", to));
  });
}

void Server::Close(Seconds d) {
  loop_.RunUntil(
      [this] {
        return std::ranges::all_of(roster_.all(), [](const auto& each) { return each->idle(); });
      },
      d);
  acceptor_.close();
  accept_again_.cancel();
  gates_.Shut();
  std::vector<std::shared_ptr<Connection>> open;
  for (const auto& session : roster_.all()) {
    const auto connections = session->connections();
    open.insert(open.end(), connections.begin(), connections.end());
    EndSession(session, "", false, Bye{true, "the coordinator has closed"});
  }
  loop_.RunUntil(
      [&] { return std::ranges::all_of(open, [](const auto& each) { return each->closed(); }); },
      kFarewell);
}

TcpNodeStatus Server::StatusOf(NodeId node) const {
  const auto past = status_.find(node);
  TcpNodeStatus status = past == status_.end() ? TcpNodeStatus() : past->second;
  const auto session = roster_.Of(node);
  if (!session) return status;
  TcpNodeStatus now = session->Status();
  now.AddCounts(status);
  return now;
}

void Server::Event(NodeId node, const std::string& kind, const std::string& detail) {
  recorder_.Record(analysis::EventRecord{sim::ToSeconds(Now()), node, kind, detail});
}

}  // namespace spes::trainer
