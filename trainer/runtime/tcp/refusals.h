// Word of who was not let in, or dropped, for the log.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "analysis/recorder.h"
#include "sim/units.h"

namespace spes::trainer {

// One event for each address and reason, then at most one every kQuiet that counts the others: a
// flood of connections is not to become a flood of rows.
class Refusals {
 public:
  // Must outlive this.
  explicit Refusals(analysis::Recorder& recorder) : recorder_(recorder) {}

  // `kind`: "refused" or "dropped". `host`: the address without its port. `node`: −1 where it is
  // not known.
  void Record(sim::Time now, const std::string& kind, std::int32_t node, const std::string& host,
              const std::string& why);

  static constexpr sim::Time kQuiet = std::chrono::seconds(10);

 private:
  struct Seen {
    sim::Time recorded{0};
    std::int64_t since = 0;  // that were not
  };

  analysis::Recorder& recorder_;
  std::map<std::pair<std::string, std::string>, Seen> seen_;  // by address and reason
};

}  // namespace spes::trainer
