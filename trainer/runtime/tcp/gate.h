// The coordinator's side of letting a connection in.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "trainer/runtime/tcp/connection.h"
#include "trainer/runtime/tcp/handshake.h"
#include "trainer/runtime/tcp/refusals.h"
#include "trainer/runtime/tcp/roster.h"

namespace spes::trainer {

// Why a connection is not even looked at.
inline constexpr std::string_view kTooMany = "too many connections that are not let in yet";

// One connection that is not let in yet.
class Gate : public Connection::Owner, public std::enable_shared_from_this<Gate> {
 public:
  struct LetIn {
    std::shared_ptr<Session> session;
    Welcome welcome;  // but for the proof
  };
  class Keeper {
   public:
    virtual ~Keeper() = default;
    // Who asks has the token and the certificate that are wanted. Nothing: ask again later.
    virtual std::variant<LetIn, std::monostate, Refuse> Judge(const Connection& connection,
                                                              Request& request) = 0;
    // It was not let in. `node`: that was wanted by who has the token; −1: by anyone else.
    virtual void OnTurnedAway(const Connection& connection, Refusals::Kind kind, NodeId node,
                              const std::string& why) = 0;
  };

  // `keeper` must outlive the gate. An empty token: none is asked for.
  Gate(Keeper& keeper, std::string token, double handshake_time_s);

  void Open(std::shared_ptr<Connection> connection);
  // Drops who takes too long.
  void Tick(double passed);
  // Turned away, with its last words still on their way.
  bool lingers() const { return state_ == State::kDone && !in_ && !connection_->closed(); }
  // Let in, or turned away and closed.
  bool done() const { return state_ == State::kDone && !lingers(); }
  const Connection& connection() const { return *connection_; }
  // Has shown that it has what is wanted of members.
  bool proven() const { return proven_; }
  // Without a word.
  void Shut();
  // Likewise, in favour of somebody else; the keeper is told.
  void GiveWay();

  // Connection::Owner.
  std::optional<std::uint64_t> Most(const Connection& connection, FrameType type) const override;
  void OnFrame(Connection& connection, const FrameHeader& header,
               std::string_view payload) override;
  void OnWireError(Connection& connection, const std::string& why) override;
  void OnClosed(Connection& connection, const std::string& why, bool permanent) override;

 private:
  // kHeld: proven, but it is not clear yet whether its node is free. kExplaining: told that its
  // scenario is another; it may say what the difference is.
  enum class State { kHello, kProof, kHeld, kExplaining, kDone };

  void OnProof(const Proof& proof);
  void Decide();
  void TurnAway(const Refuse& refuse, Refusals::Kind kind, const std::string& why);
  void Finish(Refusals::Kind kind, const std::string& why);
  void Report(Refusals::Kind kind, const std::string& why);

  Keeper& keeper_;
  std::string token_;
  double rest_s_;
  std::shared_ptr<Connection> connection_;
  State state_ = State::kHello;
  bool proven_ = false, in_ = false;
  Transcript said_;
  Request request_;
};

}  // namespace spes::trainer
