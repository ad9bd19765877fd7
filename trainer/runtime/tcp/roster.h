// Which node is whose: the sessions of a coordinator.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "trainer/runtime/tcp/handshake.h"
#include "trainer/runtime/tcp/session.h"

namespace spes::trainer {

// A node asks for a session. Kept while its answer is open.
struct Request {
  Hello hello;
  std::optional<NodeId> certified;  // the node that its certificate is for
  double waited_s = 0;
  std::optional<std::uint64_t> frames;  // of the session that has the node, when it was first asked
};

class Roster {
 public:
  struct Setup {
    int nodes = 0;
    std::function<bool(NodeId)> taken;  // by nobody who asks
    bool known = false;                 // somebody has been each of them, and may come back
    double clock_difference_s = 0;
    double keep_s = 0;  // the number of who is away that long is given to others
  };
  Roster(Setup setup, TcpScenario scenario);

  // No session is asked for: the one that the connection belongs to, which is that of the node that
  // its certificate is for, or why not.
  std::variant<std::shared_ptr<Session>, Refuse> Find(const Request& request) const;

  // A session is asked for. A node to be given, nothing as long as it is not clear whether another
  // process has it still, or why not. `clock_us`: this side's. Where a session has the node that is
  // given, it is a dead one.
  std::variant<NodeId, std::monostate, Refuse> Judge(Request& request, std::int64_t clock_us) const;

  void Tick(double passed);

  // In place of the one that has its node, which must have been ended.
  void Add(std::shared_ptr<Session> session);
  void Remove(const Session& session);
  void Ban(NodeId node, const std::string& reason) { banned_[node] = reason; }

  std::shared_ptr<Session> Of(NodeId node) const;  // null: none
  std::vector<std::shared_ptr<Session>> all() const;

 private:
  std::optional<Refuse> Bar(NodeId node) const;
  std::variant<NodeId, std::monostate, Refuse> Want(NodeId node, Request& request) const;
  std::variant<NodeId, std::monostate, Refuse> AnyNode() const;
  bool IsThere(NodeId node) const;

  Setup setup_;
  TcpScenario scenario_;
  std::map<NodeId, std::shared_ptr<Session>> by_node_;
  std::map<SessionId, std::shared_ptr<Session>> by_id_;
  std::map<NodeId, std::string> banned_;
  std::map<NodeId, double> away_s_;  // of nodes that somebody has been; 0: it is there
};

}  // namespace spes::trainer
