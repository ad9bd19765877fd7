#include "trainer/runtime/tcp/roster.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

namespace spes::trainer {

Roster::Roster(Setup setup, TcpScenario scenario)
    : setup_(std::move(setup)), scenario_(std::move(scenario)) {
  for (NodeId node = 0; setup_.known && node < setup_.nodes; ++node) away_s_[node] = 0;
}

void Roster::Tick(double passed) {
  for (auto& [node, away_s] : away_s_) away_s = IsThere(node) ? 0 : away_s + passed;
}

bool Roster::IsThere(NodeId node) const {
  const std::shared_ptr<Session> session = Of(node);
  return session && session->Has(ConnectionRole::kControl, 0);
}

std::variant<std::shared_ptr<Session>, Refuse> Roster::Find(const Request& request) const {
  const auto found = by_id_.find(request.hello.session);
  const bool theirs = found != by_id_.end() &&
                      request.certified.value_or(found->second->node()) == found->second->node();
  if (theirs) return found->second;
  return Refuse{RefuseCode::kUnknownSession, false, "the coordinator does not know this session"};
}

std::variant<NodeId, std::monostate, Refuse> Roster::Judge(Request& request,
                                                           std::int64_t clock_us) const {
  const Hello& hello = request.hello;
  const double behind =
      1e-6 * (static_cast<double>(clock_us) - static_cast<double>(hello.clock_us));
  if (std::abs(behind) > setup_.clock_difference_s) {
    return Refuse{RefuseCode::kClocks, true,
                  fmt::format("the node's clock is {:.0f} s {} the coordinator's; at most {:g} s "
                              "are allowed: set the clocks",
                              std::abs(behind), behind > 0 ? "behind" : "ahead of",
                              setup_.clock_difference_s)};
  }
  if (hello.scenario_hash != scenario_.hash) {
    return Refuse{RefuseCode::kScenario, true, scenario_.text};
  }
  if (!request.certified) {
    if (hello.node == kAnyNode) return AnyNode();
    auto given = Want(hello.node, request);
    const auto* refuse = std::get_if<Refuse>(&given);
    // Who is kept out must not come back under another number.
    const bool another = hello.or_any && refuse && refuse->code != RefuseCode::kBanned;
    return another ? AnyNode() : std::move(given);
  }
  if (hello.node != kAnyNode && !hello.or_any && hello.node != *request.certified) {
    return Refuse{RefuseCode::kTaken, true,
                  fmt::format("node {} was asked for with the certificate of node {}", hello.node,
                              *request.certified)};
  }
  return Want(*request.certified, request);
}

// Why nobody gets the node; nothing: somebody may.
std::optional<Refuse> Roster::Bar(NodeId node) const {
  if (setup_.taken && setup_.taken(node)) {
    return Refuse{RefuseCode::kTaken, true, fmt::format("node {} is the coordinator's own", node)};
  }
  if (const auto banned = banned_.find(node); banned != banned_.end()) {
    return Refuse{RefuseCode::kBanned, true,
                  fmt::format("node {} is kept out: {}", node, banned->second)};
  }
  return std::nullopt;
}

std::variant<NodeId, std::monostate, Refuse> Roster::Want(NodeId node, Request& request) const {
  if (node < 0 || node >= setup_.nodes) {
    return Refuse{RefuseCode::kNoSuchNode, true,
                  fmt::format("there is no node {} in a run of {} nodes", node, setup_.nodes)};
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

// One that nobody has been yet; otherwise the one that is away longest, once it is not waited for
// any more.
std::variant<NodeId, std::monostate, Refuse> Roster::AnyNode() const {
  bool all_connected = true;
  std::optional<NodeId> longest;
  for (NodeId node = 0; node < setup_.nodes; ++node) {
    if (Bar(node)) continue;
    const auto away = away_s_.find(node);
    if (away == away_s_.end()) return node;
    if (IsThere(node)) {
      all_connected = all_connected && Of(node)->connected();
      continue;
    }
    all_connected = false;
    const bool given = away->second >= setup_.keep_s;
    if (given && (!longest || away->second > away_s_.at(*longest))) longest = node;
  }
  if (longest) return *longest;
  return Refuse{RefuseCode::kNoSuchNode, all_connected,
                fmt::format("all {} nodes of the run are taken{}", setup_.nodes,
                            all_connected ? "" : ", or away for a moment only")};
}

void Roster::Add(std::shared_ptr<Session> session) {
  by_id_[session->id()] = session;
  away_s_[session->node()] = 0;
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
