#include "trainer/cost/forecast_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "sim/units.h"

namespace spes::trainer {

namespace {

constexpr std::size_t kMostRows = 32;

// Of one round.
struct Row {
  double compute_s, exchange_s, wait_s, utilisation, up_bytes, down_bytes;
};

Row RowOf(const NodeForecast& node, double rounds) {
  return {node.compute_s / rounds,
          node.exchange_s / rounds,
          node.wait_s / rounds,
          node.utilisation(),
          static_cast<double>(node.up_bytes) / rounds,
          static_cast<double>(node.down_bytes) / rounds};
}

std::string Line(const std::string& name, const Row& row) {
  const auto seconds = [](double s) { return sim::FormatDuration(sim::FromSeconds(s), 4); };
  const auto bytes = [](double b) { return sim::FormatByteSize(std::llround(b), 4); };
  return fmt::format("{:<12}{:>12}{:>12}{:>12}{:>10.1f} %{:>12}{:>12}\n", name,
                     seconds(row.compute_s), seconds(row.exchange_s), seconds(row.wait_s),
                     100 * row.utilisation, bytes(row.up_bytes), bytes(row.down_bytes));
}

// A statistic of each column by itself.
template <class F>
Row Over(const std::vector<Row>& rows, const F& statistic) {
  const auto column = [&](double Row::*field) {
    std::vector<double> values;
    for (const Row& row : rows) values.push_back(row.*field);
    return statistic(values);
  };
  return {column(&Row::compute_s),   column(&Row::exchange_s), column(&Row::wait_s),
          column(&Row::utilisation), column(&Row::up_bytes),   column(&Row::down_bytes)};
}

}  // namespace

std::string ForecastText(const Forecast& forecast, const ForecastContext& context) {
  const double rounds = forecast.rounds;
  std::vector<Row> rows;
  for (const NodeForecast& node : forecast.nodes) rows.push_back(RowOf(node, rounds));
  std::vector<std::size_t> order(rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (rows.size() > kMostRows) {
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return rows[a].wait_s < rows[b].wait_s; });
    order.resize(kMostRows);
  }

  const double round_s = forecast.total_s / rounds;
  std::string text = fmt::format(
      "{}: {} nodes, {:.4g} M parameters, exchange by {}, network {}\n"
      "{} rounds in {} of virtual time, {} a round; nothing was trained\n\n",
      context.scenario, rows.size(), static_cast<double>(context.parameters) / 1e6, context.pattern,
      context.network, forecast.rounds, sim::FormatDuration(sim::FromSeconds(forecast.total_s), 4),
      sim::FormatDuration(sim::FromSeconds(round_s), 4));
  text += fmt::format("{:<12}{:>12}{:>12}{:>12}{:>12}{:>12}{:>12}\n", "per round", "compute",
                      "exchange", "wait", "utilisation", "up", "down");
  for (const std::size_t node : order) text += Line(fmt::format("node {}", node), rows[node]);
  if (order.size() < rows.size()) {
    text += fmt::format("  and {} nodes that wait longer; --format csv has them all\n",
                        rows.size() - order.size());
  }
  using Values = std::vector<double>;
  text += Line("mean", Over(rows, [](const Values& v) {
                 return std::accumulate(v.begin(), v.end(), 0.0) / static_cast<double>(v.size());
               }));
  text += Line("least", Over(rows, [](const Values& v) { return *std::ranges::min_element(v); }));
  text += Line("most", Over(rows, [](const Values& v) { return *std::ranges::max_element(v); }));

  text += fmt::format("\nslowest node   node {}: the others wait for it\n", forecast.SlowestNode());
  if (!forecast.busiest.name.empty()) {
    text += fmt::format("busiest link   {}: {:.1f} % of its time, {} on the wire\n",
                        forecast.busiest.name, 100 * forecast.busiest.utilisation,
                        sim::FormatByteSize(forecast.busiest.wire_bytes, 4));
  }
  if (context.tokens_per_round > 0 && round_s > 0) {
    text += fmt::format("tokens         {:.4g} per second, all nodes together\n",
                        static_cast<double>(context.tokens_per_round) / round_s);
  }
  text += fmt::format("wall time      {:.2f} s for {} transfers\n", context.wall_s, forecast.flows);
  return text;
}

std::string ForecastCsv(const Forecast& forecast) {
  std::string text = "node,compute_s,exchange_s,wait_s,total_s,utilisation,up_bytes,down_bytes\n";
  for (std::size_t i = 0; i < forecast.nodes.size(); ++i) {
    const Row row = RowOf(forecast.nodes[i], forecast.rounds);
    text += fmt::format("{},{:.9g},{:.9g},{:.9g},{:.9g},{:.6g},{:.15g},{:.15g}\n", i, row.compute_s,
                        row.exchange_s, row.wait_s, row.compute_s + row.exchange_s + row.wait_s,
                        row.utilisation, row.up_bytes, row.down_bytes);
  }
  return text;
}

}  // namespace spes::trainer
