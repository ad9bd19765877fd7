#include "trainer/runtime/tcp/gate.h"

#include <fmt/format.h>

#include <utility>

#include "trainer/runtime/tcp/bytes.h"
#include "trainer/wire/printable.h"

namespace spes::trainer {

namespace {
constexpr std::uint64_t kMaxExplanation = 4096;
constexpr std::string_view kScenario = "its scenario is not the coordinator's";

// As the node tells it; empty: it does not.
std::string Difference(const std::string& told) {
  if (told.empty()) return std::string(kScenario);
  return fmt::format("{}: {}", kScenario, Printable(told.substr(0, kMaxReason)));
}

}  // namespace

Gate::Gate(Keeper& keeper, std::string token, double handshake_time_s)
    : keeper_(keeper), token_(std::move(token)), rest_s_(handshake_time_s) {}

void Gate::Open(std::shared_ptr<Connection> connection) {
  connection_ = std::move(connection);
  connection_->Start();
}

std::optional<std::uint64_t> Gate::Most(const Connection&, FrameType type) const {
  if (state_ == State::kHello && type == FrameType::kHello) return kMaxHandshakeBytes;
  if (state_ == State::kProof && type == FrameType::kProof) return kMaxHandshakeBytes;
  if (state_ == State::kExplaining && type == FrameType::kRefuse) return kMaxExplanation;
  return std::nullopt;
}

void Gate::OnFrame(Connection& connection, const FrameHeader& header, std::string_view payload) {
  switch (header.type) {
    case FrameType::kHello: {
      request_.hello = DecodeHello(payload);
      said_.hello = std::string(payload);
      said_.challenge = Encode(Challenge{RandomNonce()});
      if (connection.tls()) said_.channel = connection.tls()->Channel();
      state_ = State::kProof;
      return connection.Put(FrameType::kChallenge, 0, said_.challenge);
    }
    case FrameType::kProof:
      return OnProof(DecodeProof(payload));
    default:
      return Finish(Refusals::Kind::kScenario, Difference(DecodeRefuse(payload).text));
  }
}

void Gate::OnProof(const Proof& proof) {
  if (!token_.empty() && !SameDigest(proof.digest, NodeProof(token_, said_))) {
    return TurnAway({RefuseCode::kNotLetIn, true, ""}, Refusals::Kind::kToken,
                    "it does not have the token");
  }
  proven_ = true;
  if (connection_->tls()) request_.certified = connection_->tls()->CertifiedNode();
  Decide();
}

void Gate::Decide() {
  auto verdict = keeper_.Judge(*connection_, request_);
  if (std::holds_alternative<std::monostate>(verdict)) {
    state_ = State::kHeld;
    return;
  }
  if (const auto* refuse = std::get_if<Refuse>(&verdict)) {
    return TurnAway(*refuse, Refusals::Kind::kOther, refuse->text);
  }
  LetIn& in = std::get<LetIn>(verdict);
  in.welcome.digest = CoordinatorProof(token_, said_);
  state_ = State::kDone;
  in_ = true;
  connection_->Put(FrameType::kWelcome, 0, Encode(in.welcome));
  in.session->Attach(connection_, request_.hello.role, request_.hello.index);
}

void Gate::TurnAway(const Refuse& refuse, Refusals::Kind kind, const std::string& why) {
  connection_->Put(FrameType::kRefuse, 0, Encode(refuse));
  if (refuse.code == RefuseCode::kScenario) {
    state_ = State::kExplaining;
  } else {
    Finish(kind, why);
  }
}

void Gate::Finish(Refusals::Kind kind, const std::string& why) {
  connection_->FinishAndClose();
  Report(kind, why);
}

void Gate::Report(Refusals::Kind kind, const std::string& why) {
  state_ = State::kDone;
  keeper_.OnTurnedAway(*connection_, kind, proven_ ? request_.hello.node : kAnyNode, why);
}

void Gate::OnWireError(Connection& connection, const std::string& why) {
  if (state_ == State::kDone) return connection.Close("", false);
  if (state_ == State::kExplaining) {
    return Finish(Refusals::Kind::kScenario, std::string(kScenario));
  }
  // Another version of this program may know why; anyone else gets no answer at all.
  if (connection.other_version()) {
    connection.Put(FrameType::kRefuse, 0, Encode(Refuse{}));
    return Finish(Refusals::Kind::kNonsense, why);
  }
  connection.Close("", false);
  Report(Refusals::Kind::kNonsense, why);
}

void Gate::OnClosed(Connection&, const std::string& why, bool) {
  if (state_ == State::kDone) return;
  if (state_ == State::kExplaining) {
    return Report(Refusals::Kind::kScenario, std::string(kScenario));
  }
  Report(Refusals::Kind::kClosed, why);
}

void Gate::Tick(double passed) {
  if (state_ == State::kDone) return;
  rest_s_ -= passed;
  if (state_ == State::kHeld && rest_s_ > 0) {
    request_.waited_s += passed;
    return Decide();
  }
  if (rest_s_ > 0) return;
  if (state_ == State::kHeld) {
    const std::string why = "another process may have the node still";
    return TurnAway({RefuseCode::kTaken, false, why}, Refusals::Kind::kOther, why);
  }
  if (state_ == State::kExplaining) {
    return Finish(Refusals::Kind::kScenario, std::string(kScenario));
  }
  connection_->Close("", false);
  Report(Refusals::Kind::kSlow, "it took too long to be let in");
}

void Gate::Shut() {
  if (in_) return;
  state_ = State::kDone;
  connection_->Close("", false);
}

void Gate::GiveWay() {
  connection_->Close("", false);
  Report(Refusals::Kind::kFlood, std::string(kTooMany));
}

}  // namespace spes::trainer
