#include "analysis/recorder.h"

#include <exception>

namespace spes::analysis {
namespace {

// One part that cannot write must not keep the others from ending well.
template <class Call>
void CallAll(const std::vector<Recorder*>& parts, Call call) {
  std::exception_ptr first;
  for (Recorder* part : parts) {
    try {
      call(*part);
    } catch (...) {
      if (!first) first = std::current_exception();
    }
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace

void TeeRecorder::Flush() {
  CallAll(parts_, [](Recorder& part) { part.Flush(); });
}

void TeeRecorder::Finish(RunStatus status, const std::string& world_hash) {
  CallAll(parts_, [&](Recorder& part) { part.Finish(status, world_hash); });
}

}  // namespace spes::analysis
