// Who may use ns-3's simulator.
#pragma once

#include <ns3/simulator-impl.h>
#include <ns3/simulator.h>

#include <atomic>
#include <stdexcept>

namespace spes::sim {

class SimulatorTaken {
 protected:
  SimulatorTaken() {
    if (taken_.exchange(true)) {
      throw std::logic_error("a second packet network in one process: ns-3 has one simulator");
    }
  }
  ~SimulatorTaken() { taken_ = false; }
  SimulatorTaken(const SimulatorTaken&) = delete;
  SimulatorTaken& operator=(const SimulatorTaken&) = delete;

 private:
  static inline std::atomic<bool> taken_ = false;
};

// ns-3 has one simulator in a process: for as long as this lives it is a new one of the kind given;
// then there is none, so that the next may be of another kind. Throws std::logic_error while
// another claim lives.
template <typename Implementation>
class SimulatorClaim : private SimulatorTaken {
 public:
  SimulatorClaim() : simulator_(ns3::CreateObject<Implementation>()) {
    ns3::Simulator::SetImplementation(simulator_);
  }
  ~SimulatorClaim() {
    simulator_ = nullptr;
    ns3::Simulator::Destroy();
  }

  Implementation& operator*() const { return *simulator_; }
  Implementation* operator->() const { return ns3::PeekPointer(simulator_); }

 private:
  ns3::Ptr<Implementation> simulator_;
};

}  // namespace spes::sim
