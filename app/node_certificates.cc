#include "app/node_certificates.h"

#include <iostream>
#include <stdexcept>

#include "scenarios/tcp_builder.h"
#include "trainer/runtime/tcp/key_files.h"

namespace spes::app {

void WarnOfCertificates(const scenarios::Scenario& scenario, const JoinSetup& setup) {
  try {
    const trainer::TcpSecurity security =
        scenarios::BuildTcpSecurity(scenario, setup.address, false, setup.node);
    for (const trainer::CertificateDates& dates : trainer::DatesOf(security)) {
      const std::string soon = trainer::CheckDates(dates);
      if (soon.empty()) continue;
      EventLog(setup.log, setup.node.value_or(EventLog::kNoNumberYet))
          .Say(EventLevel::kWarning, "certificate", soon);
      if (!setup.log.takes_standard_error()) {
        std::cerr << "spes-sim: warning: " << soon << std::endl;
      }
    }
  } catch (const std::invalid_argument&) {
    // Said again where it ends the process.
  }
}

}  // namespace spes::app
