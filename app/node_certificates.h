// What a node should know of its certificates before it needs them.
#pragma once

#include "app/tcp_node.h"
#include "scenarios/scenario.h"

namespace spes::app {

// A warning, on the terminal or as an event, for each certificate that expires soon: the node's own
// and the authority's. Says nothing of files that RunTcpNode refuses.
void WarnOfCertificates(const scenarios::Scenario& scenario, const JoinSetup& setup);

}  // namespace spes::app
