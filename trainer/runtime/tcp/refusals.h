// Word of who was not let in, or dropped, for the log.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "analysis/recorder.h"
#include "sim/units.h"

namespace spes::trainer {

// One event for each address and kind of reason, then at most one every kQuiet that counts the
// others, and of all addresses at most kMostRows every kQuiet: a flood of connections is not to
// become a flood of rows.
class Refusals {
 public:
  enum class Kind {
    kFlood,     // no room for it
    kNonsense,  // what came is no frame that has a place here
    kClosed,    // it went, or TLS did not come about
    kSlow,      // it took too long
    kToken,     // it does not have it. From here on: it was told so
    kScenario,  // has another one
    kOther,     // the reason says
  };

  // Must outlive this.
  explicit Refusals(analysis::Recorder& recorder) : recorder_(recorder) {}

  // `host`: the address without its port. `node`: −1 where it is not known.
  void Record(sim::Time now, Kind kind, std::int32_t node, const std::string& host,
              const std::string& why);

  static constexpr sim::Time kQuiet = std::chrono::seconds(10);
  static constexpr int kMostRows = 64;

 private:
  struct Seen {
    sim::Time recorded{0};
    std::int64_t since = 0;  // that were not
  };

  analysis::Recorder& recorder_;
  std::map<std::pair<std::string, Kind>, Seen> seen_;  // by address
  sim::Time window_{0};                                // rows are counted since then
  int rows_ = 0;
  std::int64_t unsaid_ = 0;  // beyond kMostRows
};

}  // namespace spes::trainer
