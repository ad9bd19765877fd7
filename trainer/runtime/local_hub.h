// A coordinator that trains too: nodes inside its process beside those behind another runtime.
#pragma once

#include <functional>
#include <map>
#include <memory>

#include "trainer/protocol/runtime.h"

namespace spes::trainer {

// Messages between the coordinator and the nodes here are handed over; all else goes to `outside`.
class LocalHub {
 public:
  using OnMessage = std::function<void(NodeId from, const Message&)>;

  // `outside` is the coordinator's own runtime and must outlive the hub.
  explicit LocalHub(Runtime& outside) : outside_(outside) {}

  // The endpoint of the coordinator, or of a node here. Lives as long as the hub.
  Runtime& endpoint(NodeId id);

  // Before the first message. Nodes that connect are those that are here.
  void Connect(NodeId id, OnMessage on_message) { handlers_[id] = std::move(on_message); }
  bool IsHere(NodeId id) const { return handlers_.contains(id); }

 private:
  class Endpoint;
  Runtime& outside_;
  std::map<NodeId, OnMessage> handlers_;
  std::map<NodeId, std::unique_ptr<Runtime>> endpoints_;
};

}  // namespace spes::trainer
