// A node's side of a real run.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>

#include "trainer/runtime/tcp/broken_connections.h"
#include "trainer/runtime/tcp/dial.h"
#include "trainer/runtime/tcp/loop.h"
#include "trainer/runtime/tcp/session.h"

namespace spes::trainer {

// Keeps all connections of its session open, one dial at a time.
class Client final : public OnLoop<TcpClient>, public Session::Host {
 public:
  Client(TcpJoinConfig config, std::shared_ptr<const BlockTable> table, ComputePool& pool,
         analysis::Recorder& recorder);
  ~Client() override;

  // See JoinTcp. False when stopped.
  bool Join(const std::atomic<bool>& stop,
            const std::function<void(const std::string& why)>& waiting);

  NodeId node() const override { return node_; }
  void Connect(OnMessage on_message, std::function<void(const std::string& why)> renewed) override;
  void Send(NodeId to, Message message, std::int64_t charged_bytes,
            std::function<void()> delivered) override;
  void Close(Seconds d) override;
  void Fail(const std::string& why) override;
  TcpNodeStatus StatusOf(NodeId node) const override;

 private:
  // Session::Host.
  void OnArrival(Session& session, Message message) override;
  void OnConnectionClosed(Session& session, const Connection& connection, ConnectionRole role,
                          const std::string& why) override;
  void OnBye(Session& session, const Bye& bye) override;
  void OnBroken(Session& session, const std::string& why) override;
  void OnNoRoom(Session& session, const std::string& why) override;

  // Dials for the first connection that is missing, after a while where tries have failed.
  void Maintain();
  void DialFor(ConnectionRole role, int index);
  void OnDialled(ConnectionRole role, int index, Dial::Result result);
  void OnFailure(const Dial::Failure& failure);
  void OnYoungEnd();
  void SayGoodbye(const std::string& why);
  void Begin(const Welcome& welcome);
  void DropSession(const std::string& why, const std::optional<Bye>& bye);
  std::optional<std::pair<ConnectionRole, int>> Missing() const;
  void Tick(double passed);
  void Event(const std::string& kind, const std::string& detail);

  TcpJoinConfig config_;
  Dial::Setup setup_;
  std::shared_ptr<const BlockTable> table_;
  analysis::Recorder& recorder_;
  BrokenConnections broken_;
  NodeId node_;  // kAnyNode before the first session
  bool joined_ = false, closing_ = false;
  std::optional<Dial::Failure> refused_;  // before the first session, for good
  std::function<void(const std::string& why)> waiting_;

  std::shared_ptr<Session> session_;  // null: a new one is wanted
  bool renewing_ = false;             // the protocol has not been told yet that it is a new one
  std::string why_;                   // it is
  TcpNodeStatus past_;                // of sessions that have ended
  std::shared_ptr<Dial> dial_;        // null: none under way
  asio::steady_timer retry_;
  bool waits_ = false;    // for it
  bool trouble_ = false;  // since the last dial that succeeded: the next one waits
  int failures_ = 0;      // of dials, in a row
  int young_ = 0;         // connections and sessions that ended soon, lately
  double whole_s_ = 0;    // for which no connection has been missing
  double alone_s_ = 0;    // for which the session has not been connected
  std::string failure_;   // of the last dial that failed
  std::string logged_;    // the failure that was recorded last
  std::minstd_rand random_{std::random_device{}()};
  OnMessage on_message_;
  std::function<void(const std::string& why)> renewed_;
};

}  // namespace spes::trainer
