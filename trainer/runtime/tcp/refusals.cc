#include "trainer/runtime/tcp/refusals.h"

#include <fmt/format.h>

namespace spes::trainer {

namespace {
constexpr std::size_t kMostSeen = 1024;
}

void Refusals::Record(sim::Time now, Kind kind, std::int32_t node, const std::string& host,
                      const std::string& why) {
  if (seen_.size() >= kMostSeen) {
    std::erase_if(seen_, [&](const auto& each) { return now - each.second.recorded > kQuiet; });
    if (seen_.size() >= kMostSeen) seen_.clear();
  }
  const auto [found, first] = seen_.try_emplace({host, kind}, Seen{now, 0});
  Seen& seen = found->second;
  if (!first && now - seen.recorded <= kQuiet) {
    ++seen.since;
    return;
  }
  std::string detail = fmt::format("{}: {}", host, why);
  if (seen.since > 0) detail += fmt::format(" (and {} more since the last word of it)", seen.since);
  seen = {now, 0};
  if (now - window_ > kQuiet) {
    window_ = now;
    rows_ = 0;
    if (unsaid_ > 0) detail += fmt::format(" (and {} of many addresses)", unsaid_);
    unsaid_ = 0;
  }
  if (++rows_ > kMostRows) {
    ++unsaid_;
    return;
  }
  recorder_.Record(analysis::EventRecord{sim::ToSeconds(now), node,
                                         kind < Kind::kToken ? "dropped" : "refused", detail});
}

}  // namespace spes::trainer
