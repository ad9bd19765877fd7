// The coordinator's side of a real run.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "trainer/runtime/tcp/address.h"
#include "trainer/runtime/tcp/broken_connections.h"
#include "trainer/runtime/tcp/gates.h"
#include "trainer/runtime/tcp/loop.h"
#include "trainer/runtime/tcp/refusals.h"
#include "trainer/runtime/tcp/roster.h"
#include "trainer/runtime/tcp/session.h"
#include "trainer/runtime/tcp/tls.h"
#include "trainer/runtime/tcp/upload_memory.h"

namespace spes::trainer {

class Server final : public OnLoop<TcpServer>, public Session::Host, public Gate::Keeper {
 public:
  // See ServeTcp.
  Server(TcpServeConfig config, std::shared_ptr<const BlockTable> table, ComputePool& pool,
         analysis::Recorder& recorder);
  ~Server() override;

  std::string address() const override;
  void Connect(OnMessage on_message, OnLost lost) override;
  Allocate DecodeMemory() override { return memory_.ForDecoding(); }
  void RenewCertificate() override { tls_ = TlsContext::OfCoordinator(config_.security); }
  void Ban(NodeId node, const std::string& reason) override;
  void Send(NodeId to, Message message, std::int64_t charged_bytes,
            std::function<void()> delivered) override;
  void Close(Seconds d) override;
  TcpNodeStatus StatusOf(NodeId node) const override;

 private:
  // Session::Host.
  void OnArrival(Session& session, Message message) override;
  void OnTransfer(Session& session, const TransferReport& report) override;
  void OnConnectionClosed(Session& session, const Connection& connection, ConnectionRole role,
                          const std::string& why) override;
  void OnBye(Session& session, const Bye& bye) override;
  void OnBroken(Session& session, const std::string& why) override;
  void OnNoRoom(Session& session, const std::string& why) override;
  // Gate::Keeper.
  std::variant<Gate::LetIn, std::monostate, Refuse> Judge(const Connection& connection,
                                                          Request& request) override;
  void OnTurnedAway(const Connection& connection, Refusals::Kind kind, NodeId node,
                    const std::string& why) override;

  void Bind();
  void Accept();
  void OnAccept(asio::ip::tcp::socket socket);
  void Tick(double passed);
  std::shared_ptr<Session> Begin(NodeId node, const Hello& hello);
  // Nothing of the session is called any more. `lost`: the protocol is told.
  void EndSession(std::shared_ptr<Session> session, const std::string& why, bool lost,
                  const std::optional<Bye>& bye);
  int ConnectionsFrom(const std::string& host) const;
  void Event(NodeId node, const std::string& kind, const std::string& detail);

  TcpServeConfig config_;
  HostPort address_;
  std::shared_ptr<const BlockTable> table_;
  analysis::Recorder& recorder_;
  Refusals refusals_;
  BrokenConnections broken_;
  std::shared_ptr<TlsContext> tls_;  // null: without
  UploadMemory memory_;
  asio::ip::tcp::acceptor acceptor_;
  asio::steady_timer accept_again_;
  Gates gates_;
  Roster roster_;
  struct Leaving {
    std::shared_ptr<Session> session;
    double since_s = 0;
  };
  std::map<NodeId, Leaving> leaving_;       // have said so; what they are still owed is on its way
  std::map<NodeId, TcpNodeStatus> status_;  // of sessions that have ended
  std::map<NodeId, sim::Time> no_room_;     // for what the node has sent, when
  std::uint64_t last_flow_ = 0;
  OnMessage on_message_;
  OnLost lost_;
};

}  // namespace spes::trainer
