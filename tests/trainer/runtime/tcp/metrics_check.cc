#include "tests/trainer/runtime/tcp/metrics_check.h"

#include <cmath>
#include <regex>
#include <set>
#include <sstream>

#include "trainer/wire/printable.h"

namespace spes::trainer {

namespace {

class Checker {
 public:
  CheckedMetrics Run(const std::string& text) {
    if (!text.empty() && text.back() != '\n') Accuse("no line end");
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) {
      ++number_;
      if (Printable(line) != line) Accuse("not printable");
      Line(line);
    }
    if (open_ && counted_ == 0) Accuse("a metric without samples");
    return std::move(result_);
  }

 private:
  void Accuse(const std::string& what) {
    result_.offences.push_back("line " + std::to_string(number_) + ": " + what);
  }

  void Line(const std::string& line) {
    static const std::regex help("# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) (.*[^ ].*)");
    static const std::regex type("# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) (counter|gauge)");
    static const std::regex sample(
        "([a-zA-Z_:][a-zA-Z0-9_:]*)"
        R"re((\{(?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\]|\\[\\"n])*",?)+\})?)re"
        " (NaN|[+-]Inf|[+-]?[0-9.]+(?:e[+-]?[0-9]+)?)");
    std::smatch m;
    if (std::regex_match(line, m, help)) {
      if (open_ && counted_ == 0) Accuse("a metric without samples");
      if (!seen_.insert(m[1]).second) Accuse("again " + m[1].str());
      open_ = true;
      name_ = m[1];
      type_.clear();
      counted_ = 0;
      static const std::regex units(
          "_(ms|us|milliseconds|minutes|kib|mib|kb|mb|kilobytes|bits)(_|$)");
      if (std::regex_search(name_, units)) Accuse("no base unit: " + name_);
    } else if (std::regex_match(line, m, type)) {
      if (m[1] != name_ || !type_.empty() || counted_ > 0) Accuse("TYPE has no HELP before it");
      type_ = m[2];
      if ((type_ == "counter") != name_.ends_with("_total")) Accuse("_total is for counters");
    } else if (std::regex_match(line, m, sample)) {
      if (m[1] != name_ || type_.empty()) Accuse("a sample without HELP and TYPE: " + line);
      if (m[2].str().find("{__") != std::string::npos ||
          m[2].str().find(",__") != std::string::npos)
        Accuse("a label of Prometheus' own: " + line);
      ++counted_;
      const double value = std::stod(m[3]);
      if (type_ == "counter" && !(std::isfinite(value) && value >= 0)) Accuse("a count: " + line);
      if (!result_.samples.emplace(m[1].str() + m[2].str(), value).second) Accuse("twice: " + line);
    } else {
      Accuse("neither comment nor sample: " + line);
    }
  }

  CheckedMetrics result_;
  int number_ = 0, counted_ = 0;
  bool open_ = false;
  std::set<std::string> seen_;
  std::string name_, type_;
};

}  // namespace

CheckedMetrics CheckMetrics(const std::string& text) { return Checker().Run(text); }

}  // namespace spes::trainer
