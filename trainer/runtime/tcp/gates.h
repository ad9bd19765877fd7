// All connections that are not let in yet, and how many there may be.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "trainer/runtime/tcp/gate.h"

namespace spes::trainer {

// At most kMostOfOne from one address (see CountedAs), and kMost in all. When all are taken, a
// newcomer gets the place of the oldest stranger of the network that has the most of them, unless
// that is its own: whoever fills the gates from many addresses turns away its own, not others.
class Gates {
 public:
  static constexpr int kMostOfOne = 16, kMost = 256;

  // One more may be looked at. `host`: see CountedAs; `network`: see NetworkOf. Where that is too
  // many, those that are turned away already are not waited for.
  bool HasRoom(const std::string& host, const std::string& network);
  void Add(std::shared_ptr<Gate> gate, const std::string& network);

  void Tick(double passed);
  // All of them, without a word.
  void Shut();

 private:
  struct Entry {
    std::shared_ptr<Gate> gate;
    std::string network;
  };

  template <class F>
  bool Full(F counts, int most);
  bool HasGivenWay(const std::string& network);
  void Forget();

  std::vector<Entry> gates_;  // the oldest first
};

}  // namespace spes::trainer
