#include "trainer/protocol/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>
#include <utility>

namespace spes::trainer {

namespace {

// The steps at which fragment f of P is synchronised: those that are ⌈f·H/P⌉ modulo H, so that
// fragment 0 closes each period.
std::int64_t Offset(std::int64_t every, int fragment, int fragments) {
  return (every * fragment + fragments - 1) / fragments % every;
}

bool FallsOn(std::int64_t step, std::int64_t every, int fragment, int fragments) {
  return step % every == Offset(every, fragment, fragments);
}

}  // namespace

void Validate(const ScheduleConfig& c) {
  const auto require = [](bool holds, const std::string& what) {
    if (!holds) throw std::invalid_argument(what);
  };
  require(c.total_steps >= 1 && c.every >= 1, "a schedule needs at least one step and an interval");
  require(c.experts_every == 0 || c.experts_every % c.every == 0 || c.every % c.experts_every == 0,
          fmt::format("experts_every is {}; it must divide every, {}, or be a multiple of it",
                      c.experts_every, c.every));
  const int shortest = c.experts_every > 0 ? std::min(c.every, c.experts_every) : c.every;
  require(c.fragments >= 1 && c.fragments <= shortest,
          fmt::format("fragments is {}; between 1 and {}, the steps between two synchronisations "
                      "of a block",
                      c.fragments, shortest));
  // The shortest round: one fragment's turn to the next one's.
  const int round = shortest / c.fragments;
  require(
      c.overlap >= 0 && c.overlap < round,
      fmt::format("overlap is {}; it must be less than the {} steps of a round", c.overlap, round));
  require(c.first >= 0 && c.first <= c.every,
          fmt::format("first is {}; at most every, {}", c.first, c.every));
  const bool grows = c.first > 0 && c.first < c.every;
  require(!grows || c.growth > 1, fmt::format("growth is {}; it must be greater than 1", c.growth));
  require(!grows || (c.fragments == 1 && shortest == c.every && c.overlap == 0 &&
                     (c.experts_every == 0 || c.experts_every == c.every)),
          "an interval that grows goes with one fragment, one interval and no overlap only");
}

Schedule::Schedule(const ScheduleConfig& config, const BlockTable& table) {
  Validate(config);
  const auto blocks = static_cast<std::size_t>(table.size());
  SetOf(std::vector<bool>(blocks, true));
  const std::int64_t total = config.total_steps;
  const auto add = [&](std::int64_t last, int due) {
    const std::int64_t first = rounds_.empty() ? 1 : rounds_.back().last_step() + 1;
    rounds_.push_back({first, static_cast<std::int32_t>(last - first + 1), 0, due});
  };

  if (config.first > 0 && config.first < config.every) {
    double interval = static_cast<double>(config.first);
    for (std::int64_t last = 0; last < total; interval *= config.growth) {
      const double capped = std::min(interval, static_cast<double>(config.every));
      last = std::min(total, last + static_cast<std::int64_t>(capped));
      add(last, 0);
    }
  } else {
    const std::int64_t experts_every =
        config.experts_every > 0 ? config.experts_every : config.every;
    std::vector<int> fragment(blocks);
    for (BlockId id = 0; id < table.size(); ++id) {
      // Blocks outside the layers stand before the first: layer −1.
      fragment[static_cast<std::size_t>(id)] = (table[id].layer + 1) % config.fragments;
    }
    std::map<std::pair<std::vector<bool>, std::vector<bool>>, int> known;  // turns → set
    for (std::int64_t step = 1; step <= total; ++step) {
      if (step == total) {
        add(step, 0);
        break;
      }
      std::vector<bool> shared, experts;  // [fragment]: its turn
      bool any = false;
      for (int f = 0; f < config.fragments; ++f) {
        shared.push_back(FallsOn(step, config.every, f, config.fragments));
        experts.push_back(FallsOn(step, experts_every, f, config.fragments));
        any |= shared.back() || experts.back();
      }
      if (!any) continue;
      auto [found, fresh] = known.try_emplace({shared, experts}, -1);
      if (fresh) {
        std::vector<bool> due(blocks);
        for (BlockId id = 0; id < table.size(); ++id) {
          const auto i = static_cast<std::size_t>(id);
          const auto f = static_cast<std::size_t>(fragment[i]);
          due[i] = table[id].kind == BlockKind::kExpert ? experts[f] : shared[f];
        }
        const bool nothing = std::find(due.begin(), due.end(), true) == due.end();
        found->second = nothing ? -1 : SetOf(std::move(due));
      }
      if (found->second >= 0) add(step, found->second);  // a fragment may be without blocks
    }
  }
  for (std::size_t r = 0; r + 1 < rounds_.size(); ++r) {
    rounds_[r].ahead = std::min(config.overlap, rounds_[r + 1].steps);
  }
  for (const std::vector<bool>& due : due_) {
    bool all = true;
    for (BlockId id = 0; id < table.size(); ++id) {
      all &= table[id].kind != BlockKind::kExpert || due[static_cast<std::size_t>(id)];
    }
    all_experts_.push_back(all);
  }
}

int Schedule::SetOf(std::vector<bool> due) {
  const auto found = std::find(due_.begin(), due_.end(), due);
  if (found != due_.end()) return static_cast<int>(found - due_.begin());
  due_.push_back(std::move(due));
  return static_cast<int>(due_.size()) - 1;
}

}  // namespace spes::trainer
