// What trainer/runtime/tcp/server.cc does with its gates and sessions, without its sockets.
#include <algorithm>
#include <utility>
#include <variant>

#include "tests/fuzz/handshake_ends.h"
#include "tests/trainer/wire/samples.h"
#include "trainer/runtime/tcp/roster.h"

namespace spes::fuzz {

namespace {

using trainer::Connection;
using trainer::FrameType;
using trainer::Gate;
using trainer::Refuse;
using trainer::Session;

constexpr int kNodes = 3;
constexpr double kHandshakeTime = 10;

class Coordinator final : public HonestSide, public Gate::Keeper {
 public:
  Coordinator(std::string token, std::size_t most_at_once)
      : HonestSide(std::move(token), most_at_once),
        roster_({kNodes, [](trainer::NodeId node) { return node == 0; }, false, 300, 10},
                {kScenarioHash, "one: 1\ntwo: 2\n", nullptr}) {}
  ~Coordinator() override { End(); }

 private:
  void Begin(Talk& talk, std::unique_ptr<trainer::Stream> stream) override {
    auto gate = std::make_shared<Gate>(*this, token_, kHandshakeTime);
    gates_.emplace_back(&talk, gate);
    gate->Open(std::make_shared<Connection>(loop_.io(), std::move(stream), gate));
  }

  Talk& TalkOf(const Connection& connection) const {
    const auto found = std::ranges::find_if(
        gates_, [&](const auto& each) { return &each.second->connection() == &connection; });
    Require(found != gates_.end(), "word of a connection that nobody has opened");
    return *found->first;
  }

  std::variant<Gate::LetIn, std::monostate, Refuse> Judge(const Connection& connection,
                                                          trainer::Request& request) override {
    Talk& talk = TalkOf(connection);
    Require(talk.proven, "the keeper is asked about somebody without the token");
    std::shared_ptr<Session> session;
    if (request.hello.session != trainer::kNoSession) {
      auto found = roster_.Find(request);
      if (auto* refuse = std::get_if<Refuse>(&found)) return std::move(*refuse);
      session = std::get<std::shared_ptr<Session>>(std::move(found));
    } else {
      auto given = roster_.Judge(request, kClock);
      if (auto* refuse = std::get_if<Refuse>(&given)) return std::move(*refuse);
      if (std::holds_alternative<std::monostate>(given)) return std::monostate();
      session = BeginSession(std::get<trainer::NodeId>(given), request.hello);
    }
    Require(!talk.let_in && !talk.over, "let in twice, or after having been turned away");
    talk.let_in = true;
    ++let_in_;
    trainer::Welcome welcome;
    welcome.session = session->id();
    welcome.node = session->node();
    welcome.now_ns = loop_.Now().count();
    welcome.chunk_bytes = trainer::kMinChunkBytes;
    welcome.beat_ms = 2000;
    return Gate::LetIn{std::move(session), welcome};
  }

  void OnTurnedAway(const Connection& connection, trainer::Refusals::Kind, trainer::NodeId,
                    const std::string& why) override {
    CheckLine(why);
    amiss_ = true;
    Talk& talk = TalkOf(connection);
    Require(!talk.let_in && !talk.over, "turned away twice, or after having been let in");
    talk.over = true;
  }

  std::shared_ptr<Session> BeginSession(trainer::NodeId node, const trainer::Hello& hello) {
    if (const auto old = roster_.Of(node)) OnBye(*old, {true, "began anew"});
    Session::Setup setup = SessionSetup();
    trainer::FillRandom(setup.id);
    setup.node = node;
    setup.coordinator = true;
    setup.other_chunk_bytes = hello.chunk_bytes;
    setup.other_beat_s = 1e-3 * hello.beat_ms;
    static const auto table = trainer::SampleTable(trainer::DType::kFloat32);
    last_ = std::make_shared<Session>(std::move(setup), table, loop_, *this);
    roster_.Add(last_);
    return last_;
  }

  void OnArrival(Session& session, trainer::Message message) override {
    if (std::holds_alternative<trainer::Leave>(message)) {
      leaving_.push_back(session.shared_from_this());
      roster_.Remove(session);
    }
  }
  void OnTransfer(Session&, const trainer::TransferReport& report) override {
    const trainer::TransferFigures& f = report.figures;
    Require(report.bytes >= 0 && report.bytes <= report.info.bytes, "more has come than there is");
    Require(f.wire_bytes >= 0 && f.retransmitted_bytes >= 0 && f.retransmissions >= 0,
            "figures that cannot be");
    for (const double s : {f.rtt_min_s, f.rtt_mean_s}) {
      if (s >= 0) sim::FromSeconds(s);  // asks for what it can hold
    }
  }
  void OnBye(Session& session, const trainer::Bye& bye) override {
    CheckLine(bye.reason);
    if (!bye.session_over) return;
    const auto stays_alive = session.shared_from_this();
    roster_.Remove(session);
    session.End(bye);
  }

  void Pass(double s) override {
    roster_.Tick(s);
    for (const auto& [talk, gate] : std::vector(gates_)) gate->Tick(s);
  }

  void Seal(Talk& talk, FrameType type, std::string& payload) override {
    constexpr std::size_t kSessionAt = 3;
    const trainer::Digest nobody{};
    if (type == FrameType::kHello) {
      const std::string ones(trainer::SessionId().size(), '\xff');
      if (last_ && payload.size() > kSessionAt && payload.compare(kSessionAt, 16, ones) == 0) {
        payload.replace(kSessionAt, 16, reinterpret_cast<const char*>(last_->id().data()), 16);
      }
      talk.said.hello = payload;
    } else if (type == FrameType::kProof && payload == Encode(trainer::Proof{nobody})) {
      payload = Encode(trainer::Proof{NodeProof(token_, talk.said)});
      talk.proven = true;
    }
  }

  void OnSaid(Talk& talk, FrameType type, std::string_view payload) override {
    if (type == FrameType::kChallenge) {
      Require(talk.said.challenge.empty(), "a second challenge");
      talk.said.challenge = std::string(payload);
    } else if (type == FrameType::kRefuse) {
      const Refuse refuse = trainer::DecodeRefuse(payload);
      const bool silent = refuse.code == trainer::RefuseCode::kNotLetIn && refuse.text.empty();
      Require(talk.proven || silent, "a stranger is told of the run");
    } else if (type == FrameType::kWelcome) {
      const trainer::Welcome welcome = trainer::DecodeWelcome(payload);
      Require(talk.let_in, "a welcome for somebody who is not let in");
      // What was said without this side's knowing has another transcript.
      Require(talk.said.hello.empty() || token_.empty() ||
                  welcome.digest == CoordinatorProof(token_, talk.said),
              "a welcome without the proof");
    } else {
      Require(talk.let_in, "a frame of the run for a stranger");
    }
  }

  std::shared_ptr<Session> session() const override { return last_; }

  void End() {
    for (const auto& each : roster_.all()) OnBye(*each, {true, "the end"});
    for (const auto& each : leaving_) each->End(std::nullopt);
    for (const auto& [talk, gate] : gates_) gate->Shut();
  }
  void LetGo() override {
    End();
    leaving_.clear();
    gates_.clear();
  }

  trainer::Roster roster_;
  std::vector<std::pair<Talk*, std::shared_ptr<Gate>>> gates_;
  std::vector<std::shared_ptr<Session>> leaving_;
  std::shared_ptr<Session> last_;
};

}  // namespace

std::unique_ptr<HonestSide> MakeCoordinator(std::string token, std::size_t most_at_once) {
  return std::make_unique<Coordinator>(std::move(token), most_at_once);
}

}  // namespace spes::fuzz
