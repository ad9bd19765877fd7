#include "scenarios/path_matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "scenarios/csv.h"
#include "scenarios/square_matrix.h"

namespace spes::scenarios {

namespace {

constexpr std::string_view kHeader = "a,b,rtt_ms,gbps";
constexpr double kMaxRttMs = 1e7, kMaxGbps = 1e6, kMaxMbps = 1e9;
constexpr double kWithinBps = 100e9;  // of a site whose inner rate nobody says

std::string Joined(const std::vector<std::string>& cells) {
  std::string text;
  for (const std::string& cell : cells) text += (text.empty() ? "" : ",") + cell;
  return text;
}

// Every name of `x` must be in `y`.
void CheckNames(const SquareMatrix& x, const SquareMatrix& y) {
  for (const std::string& name : x.names) {
    if (y.Find(name)) continue;
    FailAt({x.file, 0}, fmt::format("has the site {}, which is not in {}", Quoted(name), y.file));
  }
}

sim::Time FromMs(double ms) { return sim::FromSeconds(ms / 1e3); }

// The rates of a pair of sites, there and back.
class Rates {
 public:
  Rates(const std::string& file, const SquareMatrix& latencies, double constant)
      : constant_(constant) {
    if (file.empty()) return;
    matrix_ = ReadSquareMatrix(file, "Mbps", kMaxMbps);
    CheckNames(*matrix_, latencies);
    CheckNames(latencies, *matrix_);
  }

  bool Given(const std::string& from, const std::string& to) const {
    return matrix_ && Value(from, to).has_value();
  }

  // `known`: whether the pair has a round trip.
  void Check(const std::string& from, const std::string& to, bool known,
             const SquareMatrix& latencies) const {
    if (!matrix_ || Given(from, to) == known) return;
    FailAt(matrix_->places[*matrix_->Find(from)],
           known ? fmt::format("there is no rate from {} to {}, but a round trip in {}", from, to,
                               latencies.file)
                 : fmt::format("there is a rate from {} to {}, but no round trip in {}", from, to,
                               latencies.file));
  }

  double Bps(const std::string& from, const std::string& to) const {
    if (!matrix_) return from == to ? kWithinBps : constant_;
    const std::optional<double>& mbps = Value(from, to);
    if (!mbps) return kWithinBps;
    if (*mbps == 0) {
      FailAt(matrix_->places[*matrix_->Find(from)],
             fmt::format("a rate of 0 Mbps from {} to {} carries nothing; leave it blank where "
                         "there is no path",
                         from, to));
    }
    return *mbps * 1e6;
  }

 private:
  const std::optional<double>& Value(const std::string& from, const std::string& to) const {
    return matrix_->values[*matrix_->Find(from)][*matrix_->Find(to)];
  }

  double constant_;
  std::optional<SquareMatrix> matrix_;
};

}  // namespace

bool SamePair(const NetworkPath& x, const NetworkPath& y) {
  return (x.a == y.a && x.b == y.b) || (x.a == y.b && x.b == y.a);
}

std::vector<NetworkPath> ReadPathList(const std::string& file, const NetworkPath& rest) {
  const std::vector<CsvRow> rows = ReadCsv(file);
  if (rows.empty()) FailAt({file, 0}, fmt::format("is empty; its first line must be {}", kHeader));
  if (Joined(rows[0].cells) != kHeader) {
    FailAt(rows[0].place, fmt::format("the first line must be {}, not {}", kHeader,
                                      Quoted(Joined(rows[0].cells))));
  }
  std::vector<NetworkPath> paths;
  std::map<std::pair<std::string, std::string>, std::pair<std::size_t, int>> known;  // index, line
  for (std::size_t r = 1; r < rows.size(); ++r) {
    const auto& [place, cells] = rows[r];
    if (cells.size() != 4 || cells[0].empty() || cells[1].empty()) {
      FailAt(place, fmt::format("{} is not two sites, a round trip and a rate: {}",
                                Quoted(Joined(cells)), kHeader));
    }
    NetworkPath path = rest;
    path.a = cells[0];
    path.b = cells[1];
    path.rtt = FromMs(CsvNumber(cells[2], place, "rtt_ms", kMaxRttMs));
    path.bps = CsvNumber(cells[3], place, "gbps", kMaxGbps) * 1e9;
    if (path.bps == 0) FailAt(place, "a rate of 0 gbps carries nothing");

    const auto [before, fresh] =
        known.emplace(std::minmax(path.a, path.b), std::pair(paths.size(), place.line));
    if (fresh) {
      paths.push_back(std::move(path));
      continue;
    }
    const auto& [index, line] = before->second;
    if (path.rtt != paths[index].rtt || path.bps != paths[index].bps) {
      FailAt(place, fmt::format("{} and {} have other values in line {}", path.a, path.b, line));
    }
  }
  if (paths.empty()) FailAt(rows.back().place, "holds no path between sites");
  return paths;
}

std::vector<NetworkPath> ReadPathMatrices(const std::string& latencies, const std::string& rates,
                                          const NetworkPath& rest) {
  const SquareMatrix rtts = ReadSquareMatrix(latencies, "ms", kMaxRttMs);
  CheckSymmetric(rtts, "ms");
  const Rates bps(rates, rtts, rest.bps);
  std::vector<NetworkPath> paths;
  for (std::size_t i = 0; i < rtts.names.size(); ++i) {
    for (std::size_t j = i; j < rtts.names.size(); ++j) {
      const std::string &a = rtts.names[i], &b = rtts.names[j];
      const std::optional<double>& ms = rtts.values[i][j];
      if (i != j) {
        bps.Check(a, b, ms.has_value(), rtts);
        bps.Check(b, a, ms.has_value(), rtts);
        if (!ms) continue;
      } else if (ms.value_or(0) == 0 && !bps.Given(a, a)) {
        continue;  // as every site without a word
      }
      NetworkPath& path = paths.emplace_back(rest);
      path.a = a;
      path.b = b;
      path.rtt = FromMs(ms.value_or(0));
      path.bps = bps.Bps(a, b);
      if (i != j && bps.Bps(b, a) != path.bps) path.bps_back = bps.Bps(b, a);
    }
  }
  if (paths.empty()) FailAt({latencies, 0}, "holds no path between sites");
  return paths;
}

}  // namespace spes::scenarios
