#include "trainer/runtime/local_hub.h"

#include <utility>

namespace spes::trainer {

class LocalHub::Endpoint final : public Runtime {
 public:
  Endpoint(LocalHub& hub, NodeId id) : hub_(hub), id_(id) {}

  sim::Time Now() const override { return hub_.outside_.Now(); }
  TimerId After(sim::Time d, std::function<void()> f) override {
    return hub_.outside_.After(d, std::move(f));
  }
  void Cancel(TimerId id) override { hub_.outside_.Cancel(id); }
  void Send(NodeId to, Message message, std::int64_t charged_bytes,
            std::function<void()> delivered) override {
    if (!hub_.IsHere(to)) {
      return hub_.outside_.Send(to, std::move(message), charged_bytes, std::move(delivered));
    }
    // Not at once: the sender may be in the middle of something.
    hub_.outside_.After(sim::Time{0},
                        [this, to, message = std::move(message), delivered = std::move(delivered)] {
                          hub_.handlers_.at(to)(id_, message);
                          if (delivered) delivered();
                        });
  }
  void Compute(std::function<void()> work, sim::Time charged, std::function<void()> done) override {
    hub_.outside_.Compute(std::move(work), charged, std::move(done));
  }
  void Work(const std::function<void()>& work) override { hub_.outside_.Work(work); }

 private:
  LocalHub& hub_;
  NodeId id_;
};

Runtime& LocalHub::endpoint(NodeId id) {
  auto& endpoint = endpoints_[id];
  if (!endpoint) endpoint = std::make_unique<Endpoint>(*this, id);
  return *endpoint;
}

}  // namespace spes::trainer
