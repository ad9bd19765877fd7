// From a scenario to the settings of real connections.
#pragma once

#include <optional>
#include <string>

#include "scenarios/scenario.h"
#include "scenarios/scenario_hash.h"
#include "trainer/runtime/tcp/tcp_runtime.h"
#include "trainer/sync/block_table.h"

namespace spes::scenarios {

// `table` must outlive the options. `spool`: folder for uploads that memory has no room for.
trainer::TcpOptions BuildTcpOptions(const Scenario& scenario, const trainer::BlockTable& table,
                                    std::string spool);

// `address`: of the coordinator, HOST:PORT. `node`: whose side; nothing: the coordinator's. Throws
// std::invalid_argument, one line, when it is none, when TLS is on and transport.keys names no
// folder, a file in it that is needed cannot be read, or a certificate in it has expired.
trainer::TcpSecurity BuildTcpSecurity(const Scenario& scenario, const std::string& address,
                                      bool coordinator, std::optional<int> node);

// What the two sides compare.
trainer::TcpScenario BuildTcpScenario(const ScenarioIdentity& identity);

}  // namespace spes::scenarios
