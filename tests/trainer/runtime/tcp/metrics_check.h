// Reads Prometheus' text exposition format 0.0.4 and holds it to its rules.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace spes::trainer {

struct CheckedMetrics {
  std::map<std::string, double> samples;  // by name with labels, as written
  std::vector<std::string> offences;      // "line 3: …"
};

// What is checked, by the format's description and by what promtool's `check metrics` asks for:
// every line ends with \n; names and label names are of the allowed characters, label names do not
// begin with __; values of labels are quoted, with only \\ \" \n escaped, and UTF-8 without control
// characters; a metric has one HELP with words, then one TYPE of a known kind, then all its
// samples, at least one, none twice; values are numbers; counters, and only they, end in _total and
// are finite and not negative; names carry no units but the base ones.
CheckedMetrics CheckMetrics(const std::string& text);

}  // namespace spes::trainer
