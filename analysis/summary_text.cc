#include "analysis/summary_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <sstream>

#include "analysis/quantities.h"
#include "analysis/statistics.h"

namespace spes::analysis {
namespace {

constexpr std::size_t kColumns = 100;

using Format = std::function<std::string(double)>;

std::string Loss(double nats) { return std::isfinite(nats) ? fmt::format("{:.4f}", nats) : "–"; }

// Seconds with the decimals that suit a whole of `whole` seconds: one unit and one precision in a
// table, so that its rows compare at a glance.
Format SecondsOf(double whole) {
  const int decimals = whole < 1 ? 4 : whole < 100 ? 2 : 1;
  return [decimals](double seconds) { return fmt::format("{:.{}f} s", seconds, decimals); };
}

// "min … max", or nothing where both read the same.
std::string Range(const Spread& spread, const Format& format) {
  const std::string min = format(spread.min), max = format(spread.max);
  return min == max ? "" : fmt::format("{:>12} … {}", min, max);
}

std::string Row(const std::string& name, const std::string& value, const std::string& share,
                const std::string& range) {
  std::string row = fmt::format("  {:<24}{:>14}{:>20}    {}", name, value, share, range);
  row.erase(row.find_last_not_of(' ') + 1);
  return row + "\n";
}

template <class Value>
std::vector<double> OfNodes(const RunTotals& run, Value value) {
  std::vector<double> values;
  for (const NodeTotals& node : run.nodes) values.push_back(value(node));
  return values;
}

// "name   text", broken between words; further lines begin below the text.
std::string Labelled(const std::string& name, const std::string& text, std::size_t indent = 8) {
  if (text.empty()) return "";
  std::string lines, line = fmt::format("{:<{}}", name, indent - 1);
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (line.size() + 1 + word.size() > kColumns && line.size() >= indent) {
      lines += line + "\n";
      line.assign(indent - 1, ' ');
    }
    line += " " + word;
  }
  return lines + line + "\n";
}

std::string Heading(const RunTotals& run, const SummaryContext& context) {
  return fmt::format(
      "{}: {}\n{} of {} rounds, {} of {} steps per node, {} nodes, {} tokens, {} of {}\n",
      context.scenario, Name(run.status), run.rounds, run.plan.rounds, run.steps, run.plan.steps,
      run.plan.nodes, FormatCount(static_cast<double>(run.tokens)), FormatDuration(run.virtual_s),
      run.plan.real ? "wall time" : "virtual time");
}

std::string Losses(const RunTotals& run, const SummaryContext& context) {
  if (run.evals.empty()) return "";
  std::string text =
      fmt::format("\n{:<26}{:>14}{:>14}{:>14}{:>14}{:>14}\n", "Held-out loss, nats/token",
                  "cross-entropy", "perplexity", "bigram", "unigram", "tokens");
  for (const EvalRecord& eval : run.evals) {
    constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
    const auto found = std::ranges::find(context.baselines, eval.domain, &Baseline::domain);
    const bool known = found != context.baselines.end();
    text += fmt::format("  {:<24.24}{:>14}{:>14.3f}{:>14}{:>14}{:>14}\n", eval.domain,
                        Loss(eval.ce), eval.perplexity, Loss(known ? found->bigram : kUnknown),
                        Loss(known ? found->unigram : kUnknown), eval.tokens);
  }
  return text;
}

std::string NodeTime(const RunTotals& run) {
  if (run.nodes.empty()) return "";
  const double whole = SpreadOf(OfNodes(run, [](const NodeTotals& n) { return n.total_s(); })).mean;
  std::string text = fmt::format("\n{:<26}{:>14}{:>20}    {:>12} … max\n",
                                 run.plan.real ? "Wall time per node" : "Virtual time per node",
                                 "mean", "share", "min");
  const Format seconds = SecondsOf(whole);
  const auto add = [&](const char* name, auto value) {
    const Spread spread = SpreadOf(OfNodes(run, value));
    text += Row(name, seconds(spread.mean), FormatPercent(Share(spread.mean, whole)),
                Range(spread, seconds));
  };
  add("compute", [](const NodeTotals& n) { return n.compute_s; });
  add("upload", [](const NodeTotals& n) { return n.up_s; });
  add("wait", [](const NodeTotals& n) { return n.wait_s; });
  add("download", [](const NodeTotals& n) { return n.down_s; });
  add("total", [](const NodeTotals& n) { return n.total_s(); });
  const Spread utilisation =
      SpreadOf(OfNodes(run, [](const NodeTotals& n) { return Share(n.compute_s, n.total_s()); }));
  return text + Row("compute utilisation", "", FormatPercent(utilisation.mean),
                    Range(utilisation, FormatPercent));
}

std::string Traffic(const RunTotals& run, const SummaryContext& context) {
  if (run.nodes.empty()) return "";
  std::string text = fmt::format("\n{:<26}{:>14}{:>20}    {:>12} … max\n", "Traffic per node",
                                 "mean", "of full averaging", "min");
  const double full =
      SpreadOf(OfNodes(run, [&](const NodeTotals& n) {
        return static_cast<double>(n.rounds) * static_cast<double>(context.full_round_bytes);
      })).mean;
  const auto add = [&](const char* name, auto bytes) {
    const Spread spread = SpreadOf(OfNodes(run, bytes));
    text += Row(name, FormatBytes(spread.mean), full > 0 ? FormatPercent(spread.mean / full) : "",
                Range(spread, FormatBytes));
  };
  add("up", [](const NodeTotals& n) { return static_cast<double>(n.up_bytes); });
  add("down", [](const NodeTotals& n) { return static_cast<double>(n.down_bytes); });
  if (full > 0) text += Row("full averaging, each way", FormatBytes(full), "", "");
  return text;
}

std::string BusiestLink(const RunTotals& run) {
  if (!run.busiest_link) return "";
  return fmt::format("\n{:<26}{:.40}: {} used over the run\n", "Busiest link",
                     run.busiest_link->name, FormatPercent(run.busiest_link->utilisation));
}

std::string Faults(const RunTotals& run) {
  if (run.faults.empty()) return "";
  std::string text;
  for (const auto& [kind, count] : run.faults) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, kind);
  }
  if (run.down_s > 0) {
    text += fmt::format("; processes were down for {}", FormatDuration(run.down_s));
  }
  return "\n" + Labelled("Faults", text, 26);
}

std::string Memory(const RunTotals& run, const SummaryContext& context) {
  std::string text;
  const double full = static_cast<double>(context.full_memory_bytes);
  if (!run.node_memory_bytes.empty()) {
    const Spread spread = SpreadOf(run.node_memory_bytes);
    text += Row("one node, predicted", FormatBytes(spread.mean),
                full > 0 ? FormatPercent(spread.mean / full) : "", Range(spread, FormatBytes));
    if (full > 0) text += Row("training everything", FormatBytes(full), "", "");
  }
  if (run.process_memory_bytes > 0) {
    text += Row("this program, largest", FormatBytes(run.process_memory_bytes), "", "");
  }
  if (text.empty()) return "";
  return fmt::format("\n{:<26}{:>14}{:>20}    {:>12} … max\n", "Memory", "mean", "of full training",
                     "min") +
         text;
}

std::string WallTime(const SummaryContext& context) {
  if (context.wall_s <= 0) return "";
  std::string text = fmt::format("\n{:<26}{:>14}{:>20}\n", "Wall time", "", "share");
  const Format format = SecondsOf(context.wall_s);
  const auto add = [&](const std::string& name, double seconds) {
    text += Row(name, format(seconds), FormatPercent(seconds / context.wall_s), "");
  };
  double rest = context.wall_s;
  for (const auto& [name, seconds] : context.wall_parts) {
    add(name, seconds);
    rest -= seconds;
  }
  if (!context.wall_parts.empty()) add("other", std::max(0.0, rest));
  add("total", context.wall_s);
  return text;
}

}  // namespace

std::string ProgressLine(const Progress& progress, double wall_s) {
  const double rate = Share(static_cast<double>(progress.tokens - progress.tokens_before), wall_s);
  const double own = progress.done - progress.done_before;
  const double left =
      own > 0 ? wall_s * (1 - progress.done) / own : std::numeric_limits<double>::quiet_NaN();
  return fmt::format(
      "round {:>{}}/{}   {} {:>11}   {:>7} tokens/s   training loss {:>6}   left {:>11}",
      progress.round, fmt::formatted_size("{}", progress.rounds), progress.rounds,
      progress.real ? "time" : "virtual", FormatDuration(progress.virtual_s), FormatCount(rate),
      Loss(progress.ce), FormatDuration(left));
}

std::string SummaryText(const RunTotals& run, const SummaryContext& context) {
  std::string text = Heading(run, context) + Losses(run, context) + NodeTime(run) +
                     Traffic(run, context) + BusiestLink(run) + Faults(run) + Memory(run, context) +
                     WallTime(context) + "\n" + Labelled("world", run.world_hash);
  // A path stays in one piece, spaces and all.
  for (const auto& [name, path] :
       {std::pair("saved", &context.world_path), std::pair("log", &context.log_path)}) {
    if (!path->empty()) text += fmt::format("{:<8}{}\n", name, *path);
  }
  for (const std::string& note : context.notes) text += Labelled("note", note);
  return text;
}

}  // namespace spes::analysis
