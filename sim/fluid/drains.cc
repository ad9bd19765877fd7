#include "sim/fluid/drains.h"

#include <algorithm>
#include <cmath>

namespace spes::sim {
namespace {

double Ns(Time t) { return static_cast<double>(t.count()); }

// Rounding must not make a flow end a nanosecond late.
constexpr double kNoise = 1e-3;  // ns

// The nanosecond by which `bytes` have drained.
Time After(Time now, double bytes, double rate) {
  if (bytes <= 0) return now;
  if (rate <= 0) return kNever;
  const double ns = std::ceil(bytes / rate - kNoise);
  return ns < Ns(kNever - now) ? now + Time(static_cast<std::int64_t>(std::max(0.0, ns))) : kNever;
}

}  // namespace

int Drains::Add(std::span<const int> links, double weight, double cap, double bytes,
                Time progress) {
  const int flow = shares_.Add(links, weight, cap);
  if (static_cast<std::size_t>(flow) >= flows_.size()) flows_.resize(flow + 1);
  flows_[flow] = {.mode = Mode::kLoose, .weight = weight, .left = bytes, .progress = progress};
  loose_.push_back(flow);
  return flow;
}

void Drains::Remove(int flow) {
  Flow& f = flows_[flow];
  if (f.mode == Mode::kPooled) {
    pools_[f.pool].marks.erase({f.mark, flow});
    touched_.push_back(f.pool);
  }
  if (f.mode == Mode::kLoose) std::erase(loose_, flow);
  single_.Clear(flow);
  f.mode = Mode::kNone;
  shares_.Remove(flow);
}

void Drains::Renew(int flow, double weight, double cap, double bytes, Time now) {
  Detach(flow, now);
  flows_[flow].left = bytes;
  flows_[flow].weight = weight;
  shares_.SetWeight(flow, weight);
  shares_.SetCap(flow, cap);
}

double Drains::Drained(const Pool& pool, Time now) const {
  return pool.drained + (now > pool.since ? pool.level * Ns(now - pool.since) : 0);
}

double Drains::Left(int flow, Time now) const {
  const Flow& f = flows_[flow];
  double left = f.left;
  if (f.mode == Mode::kSingle) left -= f.rate * Ns(now - f.since);
  if (f.mode == Mode::kPooled) left = (f.mark - Drained(pools_[f.pool], now)) * f.weight;
  return std::max(0.0, left);
}

Time Drains::Progress(const Flow& f, Time now) const {
  if (f.mode == Mode::kSingle) return f.rate > 0 ? now : f.progress;
  if (f.mode != Mode::kPooled) return f.progress;
  const Pool& pool = pools_[f.pool];
  if (pool.level > 0) return now;
  return f.since < pool.since ? pool.since : f.progress;
}

void Drains::Detach(int flow, Time now) {
  Flow& f = flows_[flow];
  if (f.mode == Mode::kLoose || f.mode == Mode::kNone) return;
  f.left = Left(flow, now);
  f.progress = Progress(f, now);
  if (f.mode == Mode::kPooled) {
    pools_[f.pool].marks.erase({f.mark, flow});
    touched_.push_back(f.pool);
  } else {
    single_.Clear(flow);
  }
  f.mode = Mode::kLoose;
  loose_.push_back(flow);
}

void Drains::Attach(int flow, Time now) {
  Flow& f = flows_[flow];
  f.since = now;
  if (shares_.capped(flow)) {
    f.mode = Mode::kSingle;
    f.rate = shares_.Rate(flow);
    single_.Set(
        flow, f.rate > 0 ? After(now, f.left, f.rate) : std::max(now, f.progress + stall_timeout_));
    return;
  }
  f.mode = Mode::kPooled;
  f.pool = shares_.group(flow);
  if (static_cast<std::size_t>(f.pool) >= pools_.size()) pools_.resize(f.pool + 1);
  Pool& pool = pools_[f.pool];
  if (pool.marks.empty()) {
    pool.drained = 0;
    pool.since = now;
    pool.level = shares_.level(f.pool);
  }
  f.mark = Drained(pool, now) + f.left / f.weight;
  pool.marks.emplace(f.mark, flow);
  touched_.push_back(f.pool);
}

void Drains::ArmPool(int index, Time now) {
  const Pool& pool = pools_[index];
  if (pool.marks.empty()) {
    pooled_.Clear(index);
  } else if (pool.level > 0) {
    pooled_.Set(index, After(now, pool.marks.begin()->first - Drained(pool, now), pool.level));
  } else {
    Time first = kNever;
    for (const auto& [mark, flow] : pool.marks) {
      first = std::min(first, Progress(flows_[flow], now) + stall_timeout_);
    }
    pooled_.Set(index, std::max(now, first));
  }
}

void Drains::Update(Time now) {
  if (shares_.outdated()) {
    shares_.Update();
    for (const int flow : shares_.moved()) Detach(flow, now);
    for (const int group : shares_.changed_groups()) {
      if (static_cast<std::size_t>(group) >= pools_.size()) pools_.resize(group + 1);
      Pool& pool = pools_[group];
      pool.drained = pool.marks.empty() ? 0 : Drained(pool, now);
      pool.since = now;
      pool.level = shares_.level(group);
      touched_.push_back(group);
    }
  }
  for (const int flow : loose_) Attach(flow, now);
  loose_.clear();
  std::ranges::sort(touched_);
  touched_.erase(std::unique(touched_.begin(), touched_.end()), touched_.end());
  for (const int pool : touched_) ArmPool(pool, now);
  touched_.clear();
}

void Drains::Report(Time now, std::vector<int>* drained, std::vector<int>* stalled) {
  while (single_.next() <= now) {
    const int flow = single_.first();
    (flows_[flow].rate > 0 ? drained : stalled)->push_back(flow);
    single_.Clear(flow);
  }
  while (pooled_.next() <= now) {
    const int index = pooled_.first();
    pooled_.Clear(index);
    Pool& pool = pools_[index];
    touched_.push_back(index);
    if (pool.level > 0) {
      const double reached = Drained(pool, now);
      for (const auto& [mark, flow] : pool.marks) {
        if (After(now, mark - reached, pool.level) > now) break;
        drained->push_back(flow);
      }
    } else {
      for (const auto& [mark, flow] : pool.marks) {
        if (Progress(flows_[flow], now) + stall_timeout_ <= now) stalled->push_back(flow);
      }
    }
  }
}

}  // namespace spes::sim
