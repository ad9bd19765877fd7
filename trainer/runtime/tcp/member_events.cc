#include "trainer/runtime/tcp/member_events.h"

#include <fmt/format.h>

#include "trainer/protocol/messages.h"

namespace spes::trainer {

void MemberEvents::Record(const analysis::EventRecord& r) {
  if (r.node == kCoordinator) return TeeRecorder::Record(r);
  const auto [found, first] = seen_.try_emplace({r.node, r.kind}, Seen{r.virtual_s});
  Seen& seen = found->second;
  analysis::EventRecord said = r;
  if (r.virtual_s - seen.since_s > kQuietSeconds) {
    if (seen.unsaid > 0) {
      said.detail += fmt::format(" (and {} more since the last word of it)", seen.unsaid);
    }
    seen = {r.virtual_s};
  }
  if (++seen.rows > kMost) {
    ++seen.unsaid;
    return;
  }
  TeeRecorder::Record(said);
}

}  // namespace spes::trainer
