// A forecast for people and for other programs.
#pragma once

#include <cstdint>
#include <string>

#include "trainer/cost/forecast.h"

namespace spes::trainer {

struct ForecastContext {
  std::string scenario;
  std::string pattern;
  std::string network;                // its level
  std::int64_t parameters = 0;        // of the model
  std::int64_t tokens_per_round = 0;  // of all nodes
  double wall_s = 0;                  // what the forecast took
};

// Means per round, a row for each node (for the slowest of them where there are more than 32), and
// what holds the rounds up.
std::string ForecastText(const Forecast& forecast, const ForecastContext& context);

// A row for each node, means per round: node, compute_s, exchange_s, wait_s, total_s, utilisation,
// up_bytes, down_bytes. With a first line of these names.
std::string ForecastCsv(const Forecast& forecast);

}  // namespace spes::trainer
