// All that the protocol knows of the outside: time, messages and work. In simulation time is
// virtual and messages cross a network model; on real machines they are the wall clock and sockets.
#pragma once

#include <cstdint>
#include <functional>

#include "sim/units.h"
#include "trainer/protocol/messages.h"

namespace spes::trainer {

// One endpoint's view. All calls and all call-backs happen on one thread, never nested in a call of
// the caller's own: Send and Compute return before anything they cause is called back.
class Runtime {
 public:
  using TimerId = std::uint64_t;

  virtual ~Runtime() = default;

  virtual sim::Time Now() const = 0;

  // Calls `f` after `d`. Cancel has no effect once `f` has run.
  virtual TimerId After(sim::Time d, std::function<void()> f) = 0;
  virtual void Cancel(TimerId id) = 0;

  // Sends `message` to `to`, reliably; messages with parameters keep their order per destination.
  // The time that it takes is that of `charged_bytes`. `delivered`, when given, is called once the
  // receiver has all of it. A message that cannot be delivered is reported to the endpoint's owner
  // as the loss of `to`.
  virtual void Send(NodeId to, Message message, std::int64_t charged_bytes,
                    std::function<void()> delivered = {}) = 0;

  // Runs `work` on another thread; `done` is called here once it is finished and `charged` has
  // passed. An exception of `work` ends the run: it is thrown to the owner of the event loop
  // instead of `done`.
  virtual void Compute(std::function<void()> work, sim::Time charged,
                       std::function<void()> done) = 0;

  // Runs `work` to its end before it returns, perhaps on another thread: what takes long without
  // being worth a state of its own goes here, so that connections give signs of life meanwhile. No
  // call-back comes within, and `work` calls nothing of the runtime's.
  virtual void Work(const std::function<void()>& work) { work(); }
};

}  // namespace spes::trainer
