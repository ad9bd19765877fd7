// Word of connections that broke, but not of those of a side that is just saying goodbye.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "analysis/recorder.h"
#include "trainer/runtime/tcp/session.h"

namespace spes::trainer {

// A side that goes closes all its connections at once, and which of them the other one hears of
// first is chance: whether a connection broke is known a moment later.
class BrokenConnections {
 public:
  // Must outlive this.
  explicit BrokenConnections(analysis::Recorder& recorder) : recorder_(recorder) {}

  void Add(const Session& session, analysis::EventRecord event) {
    waiting_.push_back({&session, std::move(event)});
  }
  // The session has ended in good order.
  void Forget(const Session& session) {
    std::erase_if(waiting_, [&](const Waiting& each) { return each.session == &session; });
  }
  void Tick(double passed) {
    for (Waiting& each : waiting_) {
      each.since_s += passed;
      if (each.since_s >= kMoment) recorder_.Record(each.event);
    }
    std::erase_if(waiting_, [](const Waiting& each) { return each.since_s >= kMoment; });
  }

 private:
  static constexpr double kMoment = 0.3;
  struct Waiting {
    const Session* session;  // never followed
    analysis::EventRecord event;
    double since_s = 0;
  };

  analysis::Recorder& recorder_;
  std::vector<Waiting> waiting_;
};

}  // namespace spes::trainer
