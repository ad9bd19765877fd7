#include "scenarios/path_matrix.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "scenarios/yaml_tree.h"

namespace spes::scenarios {

namespace {

constexpr std::string_view kHeader = "a,b,rtt_ms,gbps";
constexpr double kMaxRttMs = 1e7, kMaxGbps = 1e6;

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) {
    text.remove_suffix(1);
  }
  return text;
}

std::vector<std::string_view> Columns(std::string_view line) {
  std::vector<std::string_view> columns;
  while (true) {
    const std::size_t comma = line.find(',');
    columns.push_back(Trimmed(line.substr(0, comma)));
    if (comma == std::string_view::npos) return columns;
    line.remove_prefix(comma + 1);
  }
}

}  // namespace

bool SamePair(const NetworkPath& x, const NetworkPath& y) {
  return (x.a == y.a && x.b == y.b) || (x.a == y.b && x.b == y.a);
}

std::vector<NetworkPath> ReadPathMatrix(const std::string& file, double loss, double queue_bdp) {
  int number = 0;
  const auto fail = [&](const std::string& why) {
    throw std::invalid_argument(fmt::format("{}: {}", Place{file, number}.Text(), why));
  };
  std::ifstream in(file);
  if (!in) fail("cannot be read");

  std::vector<NetworkPath> paths;
  std::map<std::pair<std::string, std::string>, int> line_of;  // sites in alphabetical order
  bool header = false;
  for (std::string line; std::getline(in, line);) {
    ++number;
    const std::string_view text = Trimmed(line);
    if (text.empty() || text.front() == '#') continue;
    const std::vector<std::string_view> columns = Columns(text);
    if (!header) {
      std::string joined(columns[0]);
      for (std::size_t c = 1; c < columns.size(); ++c) {
        joined += ',';
        joined += columns[c];
      }
      if (joined != kHeader) {
        fail(fmt::format("the first line must be {}, not {}", kHeader, Quoted(text)));
      }
      header = true;
      continue;
    }
    if (columns.size() != 4 || columns[0].empty() || columns[1].empty()) {
      fail(fmt::format("{} is not two sites, a round trip and a rate: {}", Quoted(text), kHeader));
    }
    const auto value = [&](std::size_t column, std::string_view name, double max) {
      const std::string_view t = columns[column];
      double x = 0;
      const auto [rest, error] = std::from_chars(t.data(), t.data() + t.size(), x);
      if (error != std::errc{} || rest != t.data() + t.size() || !(x >= 0) || x > max) {
        fail(fmt::format("{} {} is not a number from 0 to {}", name, Quoted(t), max));
      }
      return x;
    };
    NetworkPath path;
    path.a = columns[0];
    path.b = columns[1];
    path.rtt = sim::FromSeconds(value(2, "rtt_ms", kMaxRttMs) / 1e3);
    path.bps = value(3, "gbps", kMaxGbps) * 1e9;
    if (path.bps == 0) fail("a rate of 0 gbps carries nothing");
    path.loss = loss;
    path.queue_bdp = queue_bdp;

    const auto [known, fresh] = line_of.emplace(std::minmax(path.a, path.b), number);
    if (fresh) {
      paths.push_back(std::move(path));
      continue;
    }
    for (const NetworkPath& other : paths) {
      if (SamePair(path, other) && (path.rtt != other.rtt || path.bps != other.bps)) {
        fail(fmt::format("{} and {} have other values in line {}", path.a, path.b, known->second));
      }
    }
  }
  if (paths.empty()) fail("holds no path between sites");
  return paths;
}

}  // namespace spes::scenarios
