// What trainer/runtime/tcp/client.cc does with its dials and its session, without its sockets.
#include <utility>
#include <variant>

#include "tests/fuzz/handshake_ends.h"
#include "tests/trainer/wire/samples.h"
#include "trainer/runtime/tcp/dial.h"

namespace spes::fuzz {

namespace {

using trainer::ConnectionRole;
using trainer::Dial;
using trainer::FrameType;
using trainer::Session;

class Node final : public HonestSide {
 public:
  Node(std::string token, std::size_t most_at_once) : HonestSide(token, most_at_once) {
    setup_.address = {"127.0.0.1", 1};
    setup_.token = std::move(token);
    // The worst there is: all that the other side has said.
    setup_.scenario = {kScenarioHash, "one: 1\ntwo: 2\n",
                       [](const std::string& theirs, const std::string&) { return theirs; }};
  }
  ~Node() override { LetGo(); }

 private:
  void Begin(Talk& talk, std::unique_ptr<trainer::Stream> stream) override {
    trainer::Hello hello;
    if (session_) {
      hello.session = session_->id();
      hello.role = talks() % 2 == 0 ? ConnectionRole::kBulk : ConnectionRole::kBeat;
    }
    hello.chunk_bytes = trainer::kMinChunkBytes;
    hello.beat_ms = 2000;
    hello.scenario_hash = kScenarioHash;
    const ConnectionRole role = hello.role;
    dials_.push_back(std::make_shared<Dial>(
        loop_.io(), setup_, std::move(hello),
        [this, &talk, role](Dial::Result result) { OnDialled(talk, role, std::move(result)); }));
    dials_.back()->StartOver(std::move(stream));
  }

  void OnDialled(Talk& talk, ConnectionRole role, Dial::Result result) {
    Require(!talk.let_in && !talk.over, "two results of one try");
    if (const auto* failure = std::get_if<Dial::Failure>(&result)) {
      CheckLine(failure->why);
      amiss_ = talk.over = true;
      return;
    }
    Require(talk.proven, "who does not have the token is taken for the coordinator");
    talk.let_in = true;
    ++let_in_;
    auto& in = std::get<Dial::LetIn>(result);
    if (!session_ && role == ConnectionRole::kControl) {
      BeginSession(in.welcome);
    } else if (!session_ || in.welcome.session != session_->id()) {
      return in.connection->Close("", false);
    }
    session_->Attach(std::move(in.connection), role, 0);
  }

  void BeginSession(const trainer::Welcome& welcome) {
    loop_.SetNow(sim::Time(welcome.now_ns));
    Require(loop_.Now() >= sim::Time(welcome.now_ns), "the clock goes back");
    Session::Setup setup = SessionSetup();
    setup.id = welcome.session;
    setup.node = trainer::kCoordinator;
    setup.other_chunk_bytes = welcome.chunk_bytes;
    setup.other_beat_s = 1e-3 * welcome.beat_ms;
    static const auto table = trainer::SampleTable(trainer::DType::kFloat32);
    session_ = std::make_shared<Session>(std::move(setup), table, loop_, *this);
  }

  void OnTransfer(Session&, const trainer::TransferReport&) override {}
  void OnBye(Session&, const trainer::Bye& bye) override {
    CheckLine(bye.reason);
    if (!bye.session_over) return;
    if (const auto session = std::exchange(session_, nullptr)) session->End(std::nullopt);
  }

  void Pass(double s) override {
    for (const auto& dial : std::vector(dials_)) dial->Tick(s);
  }

  void Seal(Talk& talk, FrameType type, std::string& payload) override {
    const trainer::Digest nobody{};
    if (type == FrameType::kChallenge && talk.said.challenge.empty()) {
      talk.said.challenge = payload;
    } else if (type == FrameType::kWelcome && payload.size() > nobody.size() &&
               payload.ends_with(Encode(trainer::Proof{nobody}))) {
      payload.replace(payload.size() - nobody.size(), nobody.size(),
                      Encode(trainer::Proof{CoordinatorProof(token_, talk.said)}));
      talk.proven = true;
    }
  }

  void OnSaid(Talk& talk, FrameType type, std::string_view payload) override {
    switch (type) {
      case FrameType::kHello:
        Require(talk.said.hello.empty(), "a second greeting");
        Require(trainer::DecodeHello(payload).scenario_hash == kScenarioHash, "another scenario");
        talk.said.hello = std::string(payload);
        return;
      case FrameType::kProof:
        // What was said without this side's knowing has another transcript.
        Require(talk.said.challenge.empty() ||
                    trainer::DecodeProof(payload).digest == NodeProof(token_, talk.said),
                "another proof");
        return;
      case FrameType::kRefuse:
        CheckLine(trainer::DecodeRefuse(payload).text);
        return;
      default:
        Require(talk.let_in, "a frame of the run for a stranger");
    }
  }

  std::shared_ptr<Session> session() const override { return session_; }

  void LetGo() override {
    for (const auto& dial : dials_) dial->Abandon();
    if (session_) session_->End(std::nullopt);
    dials_.clear();
  }

  Dial::Setup setup_;
  std::vector<std::shared_ptr<Dial>> dials_;
  std::shared_ptr<Session> session_;
};

}  // namespace

std::unique_ptr<HonestSide> MakeNode(std::string token, std::size_t most_at_once) {
  return std::make_unique<Node>(std::move(token), most_at_once);
}

}  // namespace spes::fuzz
