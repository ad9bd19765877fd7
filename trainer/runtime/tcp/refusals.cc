#include "trainer/runtime/tcp/refusals.h"

#include <fmt/format.h>

namespace spes::trainer {

namespace {
constexpr std::size_t kMostSeen = 1024;
}

void Refusals::Record(sim::Time now, const std::string& kind, std::int32_t node,
                      const std::string& host, const std::string& why) {
  if (seen_.size() >= kMostSeen) {
    std::erase_if(seen_, [&](const auto& each) { return now - each.second.recorded > kQuiet; });
    if (seen_.size() >= kMostSeen) seen_.clear();
  }
  const auto [found, first] = seen_.try_emplace({host, why}, Seen{now, 0});
  Seen& seen = found->second;
  if (!first && now - seen.recorded <= kQuiet) {
    ++seen.since;
    return;
  }
  std::string detail = fmt::format("{}: {}", host, why);
  if (seen.since > 0) detail += fmt::format(" (and {} more since the last word of it)", seen.since);
  seen = {now, 0};
  recorder_.Record(analysis::EventRecord{sim::ToSeconds(now), node, kind, detail});
}

}  // namespace spes::trainer
