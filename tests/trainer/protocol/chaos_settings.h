// Runs and faults drawn from a number.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trainer/data/keyed_random.h"
#include "trainer/protocol/coordinator.h"
#include "trainer/protocol/peer.h"
#include "trainer/runtime/fault_plan.h"
#include "trainer/runtime/faulty_runtime.h"

namespace spes::trainer {

// Random numbers, one after the other.
class Dice {
 public:
  explicit Dice(std::uint64_t key) : key_(key) {}
  double Real() { return Uniform(key_, count_++); }  // [0, 1)
  double Real(double low, double high) { return low + (high - low) * Real(); }
  int Int(int low, int high) {  // both included
    return low + static_cast<int>(Real() * (high - low + 1));
  }
  bool Chance(double p) { return Real() < p; }
  // Each order of magnitude as likely as the others.
  sim::Time Time(sim::Time low, sim::Time high);
  template <class T>
  const T& Of(const std::vector<T>& items) {
    return items[static_cast<std::size_t>(Int(0, static_cast<int>(items.size()) - 1))];
  }

 private:
  std::uint64_t key_;
  std::uint64_t count_ = 0;
};

struct ChaosSettings {
  std::uint64_t seed = 0;
  int nodes = 2;
  std::shared_ptr<const BlockTable> table;
  CoordinatorConfig coordinator;
  PeerConfig peer;
  std::vector<double> speeds;  // [node]: of steps
  sim::Time latency{0};        // of messages, about
  FaultyRuntime::Options runtime;
  bool wire = false;  // codes travel without what they are read back as

  // Every round waits for every node, however long it is away.
  bool WaitsForAll() const;
  // Whether at the start of a round a node holds the published value of every block.
  bool AdoptsAll() const;
  std::string Text() const;  // one line
};

ChaosSettings DrawSettings(std::uint64_t seed);

// Faults in and after a run that takes `length` undisturbed.
std::vector<Fault> DrawFaults(const ChaosSettings& settings, sim::Time length);

// One line for each.
std::string Text(const std::vector<Fault>& plan);

}  // namespace spes::trainer
