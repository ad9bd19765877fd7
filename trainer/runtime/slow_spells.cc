#include "trainer/runtime/slow_spells.h"

#include <algorithm>
#include <utility>

namespace spes::trainer {

SlowSpells::SlowSpells(FaultStream faults, int nodes)
    : faults_(std::move(faults)), spells_(static_cast<std::size_t>(nodes)) {
  if (faults_.Brings(FaultKind::kSlow)) next_ = faults_.Next();
}

// All that begin by then are known.
void SlowSpells::LookUntil(sim::Time t) {
  for (; next_ && next_->at <= t; next_ = faults_.Next()) {
    if (next_->kind != FaultKind::kSlow) continue;
    spells_[static_cast<std::size_t>(next_->node)].push_back(
        {next_->at, next_->at + next_->duration, next_->factor});
  }
}

sim::Time SlowSpells::Duration(NodeId node, sim::Time start, sim::Time work) {
  std::vector<Spell>& spells = spells_[static_cast<std::size_t>(node)];
  std::erase_if(spells, [start](const Spell& each) { return each.end <= start; });
  sim::Time now = start, left = work;
  while (true) {
    LookUntil(now);
    double factor = 1;
    for (const Spell& each : spells) {
      if (each.begin <= now && now < each.end) factor *= each.factor;
    }
    const sim::Time rest = factor == 1 ? left : sim::FromSeconds(sim::ToSeconds(left) * factor);
    // Until then it goes on at this speed.
    LookUntil(now + rest);
    sim::Time change = now + rest;
    for (const Spell& each : spells) {
      for (const sim::Time at : {each.begin, each.end}) {
        if (at > now) change = std::min(change, at);
      }
    }
    if (change == now + rest) return change - start;
    left -= factor == 1 ? change - now : sim::FromSeconds(sim::ToSeconds(change - now) / factor);
    left = std::max(left, sim::Time{0});
    now = change;
  }
}

}  // namespace spes::trainer
