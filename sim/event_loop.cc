#include "sim/event_loop.h"

#include <stdexcept>

#include "sim/network.h"

namespace spes::sim {

Time EventLoop::Now() const { return network_ ? network_->Now() : now_; }

EventLoop::EventId EventLoop::At(Time t, std::function<void()> f) {
  if (t < Now()) throw std::logic_error("an event scheduled in the past");
  const EventId id = next_id_++;
  events_.emplace(std::pair(t, id), std::move(f));
  due_.emplace(id, t);
  return id;
}

void EventLoop::Cancel(EventId id) {
  const auto found = due_.find(id);
  if (found == due_.end()) return;
  events_.erase({found->second, id});
  due_.erase(found);
}

bool EventLoop::Step() {
  if (network_) {
    if (events_.empty() && !network_->NextEvent()) return false;
    network_->AdvanceTo(events_.empty() ? kNever : events_.begin()->first.first);
  }
  // The network may have come less far, and a flow's `done` may have cancelled the event.
  if (events_.empty()) return network_ != nullptr;
  const auto next = events_.begin();
  const auto [due, id] = next->first;
  if (network_ && due > network_->Now()) return true;
  now_ = due;
  const std::function<void()> f = std::move(next->second);
  due_.erase(id);
  events_.erase(next);
  f();
  return true;
}

void EventLoop::Run(const std::function<bool()>& stop) {
  while (!(stop && stop()) && Step()) {
  }
}

}  // namespace spes::sim
