// What a run writes down waits until nothing can be refused any more.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/protocol/peer_store.h"

namespace spes::app {

// A start that is refused leaves nothing that the next one would take for a run. Used by the thread
// that begins the run; from then on by any.
class HoldBack {
 public:
  // Write at once; otherwise by Later.
  bool begun() const { return begun_; }
  // When the run begins, in the order in which it was asked for.
  void Later(std::function<void()> write) { waiting_.push_back(std::move(write)); }
  void Begin() {
    begun_ = true;
    for (const auto& write : std::exchange(waiting_, {})) write();
  }

 private:
  bool begun_ = false;
  std::vector<std::function<void()>> waiting_;
};

// A store whose writes are held back; `hold_back` must outlive it.
class HeldBackStore final : public trainer::PeerStore {
 public:
  HeldBackStore(std::unique_ptr<trainer::PeerStore> disk, HoldBack& hold_back)
      : disk_(std::move(disk)), hold_back_(hold_back) {}

  void Write(std::int32_t round, const trainer::StateBytes& state) override {
    if (hold_back_.begun()) return disk_->Write(round, state);
    hold_back_.Later(
        [this, round, copy = trainer::StateBytes(state.Text())] { disk_->Write(round, copy); });
  }
  std::vector<std::int32_t> Rounds() const override { return disk_->Rounds(); }
  std::optional<std::string> Read(std::int32_t round) const override { return disk_->Read(round); }

 private:
  std::unique_ptr<trainer::PeerStore> disk_;
  HoldBack& hold_back_;
};

}  // namespace spes::app
