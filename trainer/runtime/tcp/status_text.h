// A status report as text: for Prometheus, for programs, for people.
#pragma once

#include <string>
#include <string_view>

#include "trainer/runtime/tcp/status_report.h"

namespace spes::trainer {

// Prometheus' text exposition format 0.0.4: each metric with its HELP and TYPE, all its samples
// below. Names begin with spes_, units are the base ones (seconds, bytes), counters end in _total.
// What is not known has no sample.
std::string MetricsText(const StatusReport& report);

// One object with the same facts; what is not known is null.
std::string StatusJson(const StatusReport& report);

// A page that needs nothing else and loads itself anew every two seconds.
std::string StatusPage(const StatusReport& report);

// For HTML, inside an element or a quoted attribute: & < > " ' as references, what is not printable
// as '?'.
std::string EscapeHtml(std::string_view text);

// For a label of the exposition format: \ " and line ends escaped, other bytes that are not
// printable as '?'.
std::string EscapeLabel(std::string_view text);

}  // namespace spes::trainer
