#include "scenarios/validate_transport.h"

#include <fmt/format.h>

namespace spes::scenarios {

void ValidateTransport(const Scenario& scenario, const Origins& origins) {
  const TransportSection& t = scenario.transport;
  if (t.mutual && t.keys.empty()) {
    origins.Fail("transport.mutual", "asks for certificates, but transport.keys names none");
  }
  if (t.mutual && t.tls == TlsUse::kOff) {
    origins.Fail("transport.mutual", "asks for certificates, which need TLS: transport.tls is off");
  }
  if (t.dead_after < 2 * t.beat_every) {
    origins.Fail("transport.dead_after",
                 fmt::format("is {:g} s, less than two beats of transport.beat_every, {:g} s",
                             sim::ToSeconds(t.dead_after), sim::ToSeconds(t.beat_every)));
  }
  if (t.kind == TransportKind::kSim) return;
  if (scenario.network.exchange.pattern != sim::ExchangePattern::kCoordinator) {
    origins.Fail("network.exchange.pattern",
                 "is for simulation; with transport.kind: tcp all parameters pass through the "
                 "coordinator, so it must be coordinator");
  }
}

}  // namespace spes::scenarios
