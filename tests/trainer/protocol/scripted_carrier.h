// A scripted runtime under processes that end and connections that break.
#pragma once

#include <utility>

#include "tests/trainer/protocol/scripted_runtime.h"
#include "trainer/runtime/faulty_runtime.h"

namespace spes::trainer {

// `runtime` must outlive its user.
inline FaultyRuntime::Carrier CarrierOf(ScriptedRuntime& runtime) {
  return {[&runtime](NodeId id) -> Runtime& { return runtime.endpoint(id); },
          [&runtime](NodeId id, FaultyRuntime::OnMessage f) { runtime.Connect(id, std::move(f)); },
          [&runtime](NodeId node) { runtime.Cut(node, kCoordinator); }};
}

}  // namespace spes::trainer
