#include "trainer/runtime/tcp/roster.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

namespace spes::trainer {

Roster::Roster(int nodes, std::function<bool(NodeId)> taken, double clock_difference_s,
               TcpScenario scenario)
    : nodes_(nodes),
      taken_(std::move(taken)),
      clock_difference_s_(clock_difference_s),
      scenario_(std::move(scenario)) {}

std::variant<std::shared_ptr<Session>, Refuse> Roster::Find(const Hello& hello) const {
  const auto found = by_id_.find(hello.session);
  if (found != by_id_.end()) return found->second;
  return Refuse{RefuseCode::kUnknownSession, false, "the coordinator does not know this session"};
}

std::variant<NodeId, std::monostate, Refuse> Roster::Judge(Request& request,
                                                           std::int64_t clock_us) const {
  const Hello& hello = request.hello;
  const double behind = 1e-6 * static_cast<double>(clock_us - hello.clock_us);
  if (std::abs(behind) > clock_difference_s_) {
    return Refuse{
        RefuseCode::kClocks, true,
        fmt::format("the node's clock is {:.0f} s {} the coordinator's; at most {:g} s "
                    "are allowed: set the clocks",
                    std::abs(behind), behind > 0 ? "behind" : "ahead of", clock_difference_s_)};
  }
  if (hello.scenario_hash != scenario_.hash) {
    return Refuse{RefuseCode::kScenario, true, scenario_.text};
  }
  if (!request.certified) {
    return hello.node == kAnyNode ? AnyNode() : Want(hello.node, request);
  }
  if (hello.node != kAnyNode && hello.node != *request.certified) {
    return Refuse{RefuseCode::kTaken, true,
                  fmt::format("node {} was asked for with the certificate of node {}", hello.node,
                              *request.certified)};
  }
  return Want(*request.certified, request);
}

// Why nobody gets the node; nothing: somebody may.
std::optional<Refuse> Roster::Bar(NodeId node) const {
  if (taken_ && taken_(node)) {
    return Refuse{RefuseCode::kTaken, true, fmt::format("node {} is the coordinator's own", node)};
  }
  if (const auto banned = banned_.find(node); banned != banned_.end()) {
    return Refuse{RefuseCode::kBanned, true,
                  fmt::format("node {} is kept out: {}", node, banned->second)};
  }
  return std::nullopt;
}

std::variant<NodeId, std::monostate, Refuse> Roster::Want(NodeId node, Request& request) const {
  if (node < 0 || node >= nodes_) {
    return Refuse{RefuseCode::kNoSuchNode, true,
                  fmt::format("there is no node {} in a run of {} nodes", node, nodes_)};
  }
  if (auto barred = Bar(node)) return *std::move(barred);
  const std::shared_ptr<Session> session = Of(node);
  if (!session || !session->Has(ConnectionRole::kControl, 0)) return node;
  // Another process, or one that died without a word? It is heard of within a few beats, or not.
  if (!request.frames) request.frames = session->frames();
  if (session->frames() > *request.frames) {
    return Refuse{RefuseCode::kTaken, true, fmt::format("node {} is another process's", node)};
  }
  if (request.waited_s <= session->silence_s()) return std::monostate();
  return node;
}

std::variant<NodeId, std::monostate, Refuse> Roster::AnyNode() const {
  bool all_connected = true;
  for (NodeId node = 0; node < nodes_; ++node) {
    if (Bar(node)) continue;
    const std::shared_ptr<Session> session = Of(node);
    if (!session) return node;
    all_connected = all_connected && session->connected();
  }
  return Refuse{RefuseCode::kNoSuchNode, all_connected,
                fmt::format("all {} nodes of the run are taken", nodes_)};
}

void Roster::Add(std::shared_ptr<Session> session) {
  by_id_[session->id()] = session;
  by_node_[session->node()] = std::move(session);
}

void Roster::Remove(const Session& session) {
  by_id_.erase(session.id());
  const auto found = by_node_.find(session.node());
  if (found != by_node_.end() && found->second.get() == &session) by_node_.erase(found);
}

std::shared_ptr<Session> Roster::Of(NodeId node) const {
  const auto found = by_node_.find(node);
  return found == by_node_.end() ? nullptr : found->second;
}

std::vector<std::shared_ptr<Session>> Roster::all() const {
  std::vector<std::shared_ptr<Session>> sessions;
  for (const auto& [node, session] : by_node_) sessions.push_back(session);
  return sessions;
}

}  // namespace spes::trainer
