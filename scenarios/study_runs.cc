#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <set>
#include <stdexcept>
#include <utility>

#include "scenarios/csv.h"
#include "scenarios/nearest.h"
#include "scenarios/study.h"
#include "trainer/data/keyed_random.h"

namespace spes::scenarios {

namespace {

constexpr std::size_t kMaxRuns = 100'000;
constexpr std::size_t kMaxName = 180;    // bytes: a file's name has at most 255
constexpr const char* kTable = "table";  // what the collection is called

std::string LastPart(const std::string& key) { return key.substr(key.rfind('.') + 1); }

// What an axis is called in full.
const std::string& FullName(const StudyAxis& axis) {
  return axis.name.empty() ? axis.key : axis.name;
}

// In runs' names: the last part of its key where no other axis has the same.
std::string ShortName(const Study& study, const StudyAxis& axis) {
  if (!axis.name.empty()) return axis.name;
  const std::string last = LastPart(axis.key);
  const bool alone = std::ranges::count_if(study.axes, [&](const StudyAxis& other) {
                       return last == (other.name.empty() ? LastPart(other.key) : other.name);
                     }) == 1;
  return alone ? last : axis.key;
}

// Fit for a file's name: no blanks, and a dash for what a shell or a file system may not like.
std::string Clean(const std::string& text) {
  std::string clean;
  for (const char c : text) {
    const bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '.' || c == '+' || c == '=' || c == '_' || c == '-' ||
                      static_cast<unsigned char>(c) >= 0x80;
    if (c == ' ') continue;
    if (word) {
      clean += c;
    } else if (!clean.empty() && clean.back() != '-') {
      clean += '-';
    }
  }
  while (clean.ends_with('-')) clean.pop_back();
  while (clean.starts_with('.') || clean.starts_with('-')) clean.erase(0, 1);
  return clean;
}

// A number and what stands behind it.
std::pair<double, std::string> SplitNumber(const StudyAxis& axis, const std::string& text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || !std::isfinite(number)) {
    FailAt(axis.place,
           fmt::format("range: {} is not a number, with or without a unit", Quoted(text)));
  }
  const std::string unit(rest, end);
  return {number, unit.substr(std::min(unit.size(), unit.find_first_not_of(' ')))};
}

// `u`: uniform in [0, 1). Four significant digits, so that the name of a run says it all.
std::string Draw(const StudyAxis& axis, double u) {
  const StudyRange& range = *axis.range;
  const auto [from, unit] = SplitNumber(axis, range.from);
  const auto [to, other_unit] = SplitNumber(axis, range.to);
  if (unit != other_unit) {
    FailAt(axis.place, fmt::format("range: from {} to {}: write both in one unit",
                                   Quoted(range.from), Quoted(range.to)));
  }
  if (!(from < to)) FailAt(axis.place, "range: `from` must be below `to`");
  if (range.log && !(from > 0)) FailAt(axis.place, "range: a logarithm needs numbers above 0");
  const double beyond = range.whole ? std::floor(to) + 1 : to;
  const double x =
      range.log ? from * std::exp(u * std::log(beyond / from)) : from + u * (beyond - from);
  const std::string number =
      range.whole
          ? fmt::format("{:.0f}", std::clamp(std::floor(x), std::ceil(from), std::floor(to)))
          : fmt::format("{:.4g}", x);
  return unit.empty() ? number : number + " " + unit;
}

// Draw `sample` of an axis. It depends on nothing else, so that more samples or axes change no run
// that has been made.
StudyPoint DrawPoint(const Study& study, const StudyAxis& axis, int sample) {
  std::uint64_t key = trainer::Key(study.draw_seed);
  for (const char c : FullName(axis)) key = trainer::Key(key, static_cast<unsigned char>(c));
  const double u = trainer::Uniform(key, static_cast<std::uint64_t>(sample));
  if (!axis.range) {
    return axis.values[static_cast<std::size_t>(u * static_cast<double>(axis.values.size()))];
  }
  const std::string text = Draw(axis, u);
  return {text, {{axis.key, Tree::Scalar(text, axis.place), axis.place}}, axis.place};
}

// One of each axis.
using Combination = std::vector<StudyPoint>;

std::vector<Combination> Combinations(const Study& study) {
  std::vector<Combination> all;
  switch (study.mode) {
    case StudyMode::kGrid: {
      std::size_t count = 1;
      for (const StudyAxis& axis : study.axes) {
        count *= axis.values.size();
        if (count > kMaxRuns) {
          FailAt(axis.place, fmt::format("axes: they make more than {} runs", kMaxRuns));
        }
      }
      for (std::size_t i = 0; i < count; ++i) {  // the last axis varies fastest
        Combination combination(study.axes.size());
        std::size_t rest = i;
        for (std::size_t a = study.axes.size(); a-- > 0;) {
          const std::vector<StudyPoint>& values = study.axes[a].values;
          combination[a] = values[rest % values.size()];
          rest /= values.size();
        }
        all.push_back(std::move(combination));
      }
      break;
    }
    case StudyMode::kZipped:
      for (const StudyAxis& axis : study.axes) {
        const std::size_t first = study.axes[0].values.size(), mine = axis.values.size();
        if (mine == first) continue;
        FailAt(axis.place,
               fmt::format("axes of mode zipped have equally many values; {} has {} and {} {}",
                           Quoted(FullName(study.axes[0])), first, Quoted(FullName(axis)), mine));
      }
      for (std::size_t i = 0; i < study.axes[0].values.size(); ++i) {
        for (Combination& c = all.emplace_back(); const StudyAxis& axis : study.axes) {
          c.push_back(axis.values[i]);
        }
      }
      break;
    case StudyMode::kRandom:
      for (int i = 0; i < study.samples; ++i) {
        for (Combination& c = all.emplace_back(); const StudyAxis& axis : study.axes) {
          c.push_back(DrawPoint(study, axis, i));
        }
      }
      break;
    case StudyMode::kList:
      for (const StudyPoint& run : study.runs) all.push_back({run});
      break;
  }
  return all;
}

std::string PointName(const Study& study, const Combination& combination, std::size_t index) {
  std::string name;
  const auto add = [&](const std::string& part) { name += (name.empty() ? "" : "_") + part; };
  if (study.mode == StudyMode::kList) {
    const StudyPoint& run = combination[0];
    if (!run.label.empty()) return Clean(run.label);
    for (const Setting& s : run.settings) {
      add(Clean(fmt::format("{}={}", LastPart(s.key), LabelOf(s.value))));
    }
    return name;
  }
  if (study.mode == StudyMode::kRandom) add(fmt::format("draw={}", index + 1));
  for (std::size_t a = 0; a < combination.size(); ++a) {
    add(Clean(fmt::format("{}={}", ShortName(study, study.axes[a]), combination[a].label)));
  }
  return name;
}

// Whether setting `above` would undo what `key` has set.
bool Covers(const std::string& above, const std::string& key) {
  return above == key || key.starts_with(above + ".");
}

// No axis may set what another, or the seeds, set as well; what comes later would win silently.
void CheckKeys(const Study& study) {
  const auto keys_of = [](const StudyAxis& axis) {
    std::vector<Setting> keys;
    if (!axis.key.empty()) keys.push_back({axis.key, Tree(), axis.place});
    for (const StudyPoint& value : axis.values) {
      keys.insert(keys.end(), value.settings.begin(), value.settings.end());
    }
    return keys;
  };
  const auto check = [&](const std::vector<Setting>& keys) {
    for (const Setting& s : keys) {
      if (s.key == "seed" && !study.seeds.empty()) {
        FailAt(s.place, "seed: the study's `seeds` set this as well");
      }
      for (const Setting& fixed : study.set) {
        if (fixed.key != s.key && Covers(s.key, fixed.key)) {
          FailAt(s.place, fmt::format("{}: would undo {} of `set`; give that to the axis", s.key,
                                      fixed.key));
        }
      }
    }
  };
  for (std::size_t a = 0; a < study.axes.size(); ++a) {
    const std::vector<Setting> mine = keys_of(study.axes[a]);
    check(mine);
    for (std::size_t b = 0; b < a; ++b) {
      for (const Setting& s : mine) {
        for (const Setting& earlier : keys_of(study.axes[b])) {
          if (!Covers(s.key, earlier.key)) continue;
          FailAt(s.place, fmt::format("{}: the axis {} sets {} as well", s.key,
                                      Quoted(FullName(study.axes[b])),
                                      s.key == earlier.key ? "it" : earlier.key));
        }
      }
    }
  }
  for (const StudyPoint& run : study.runs) check(run.settings);
}

void CheckNames(const Study& study, const std::vector<StudyRun>& runs) {
  std::set<std::string> names;
  for (const StudyRun& run : runs) {
    const Place place = run.settings.empty() ? Place{study.path, 0} : run.settings.back().place;
    if (run.name.empty()) FailAt(place, "a run without settings needs a name");
    if (run.name == kTable) {
      FailAt(place, fmt::format("no run can be called {}: the collection is", Quoted(kTable)));
    }
    if (run.name.size() > kMaxName) {
      FailAt(place, fmt::format("the name {} is too long for a file; give values a label, or the "
                                "run a name",
                                Quoted(run.name)));
    }
    if (!names.insert(run.name).second) {
      FailAt(place, fmt::format("two runs are called {}; their values or labels must differ",
                                Quoted(run.name)));
    }
  }
}

}  // namespace

std::string LabelOf(const Tree& value) {
  std::string label;
  switch (value.kind) {
    case Tree::Kind::kNull:
      break;
    case Tree::Kind::kScalar: {
      const bool yaml = value.text.ends_with(".yaml");
      if (!yaml) return value.text;
      const std::string file = value.text.substr(value.text.rfind('/') + 1);
      return file.substr(0, file.size() - std::string_view(".yaml").size());
    }
    case Tree::Kind::kList:
    case Tree::Kind::kMap:
      for (std::size_t i = 0; i < value.items.size(); ++i) {
        if (i > 0) label += '+';
        if (value.kind == Tree::Kind::kMap) label += value.keys[i].name + "=";
        label += LabelOf(value.items[i]);
      }
      break;
  }
  return label;
}

std::vector<StudyRun> StudyRuns(const Study& study) {
  CheckKeys(study);
  const std::vector<Combination> combinations = Combinations(study);
  const std::size_t seeds = std::max<std::size_t>(1, study.seeds.size());
  const std::size_t count = combinations.size() * seeds;
  if (count > kMaxRuns) {
    FailAt({study.path, 0}, fmt::format("the study has {} runs, more than {}", count, kMaxRuns));
  }
  if (study.budget.runs > 0 && count > static_cast<std::size_t>(study.budget.runs)) {
    FailAt(study.budget_place, fmt::format("budget.runs: the study has {} runs, more than {}",
                                           count, study.budget.runs));
  }
  std::vector<StudyRun> runs;
  for (std::size_t i = 0; i < combinations.size(); ++i) {
    StudyRun run;
    run.point = PointName(study, combinations[i], i);
    for (const StudyPoint& point : combinations[i]) {
      if (study.mode != StudyMode::kList) run.labels.push_back(point.label);
      run.settings.insert(run.settings.end(), point.settings.begin(), point.settings.end());
    }
    run.name = run.point;
    if (study.seeds.empty()) runs.push_back(run);
    for (const std::uint64_t seed : study.seeds) {
      StudyRun seeded = run;
      seeded.name += fmt::format("{}seed={}", run.name.empty() ? "" : "_", seed);
      const Place place{study.path, 0};
      seeded.settings.push_back({"seed", Tree::Scalar(std::to_string(seed), place), place});
      runs.push_back(std::move(seeded));
    }
  }
  CheckNames(study, runs);
  return runs;
}

std::vector<std::string> VariedKeys(const Study& study) {
  std::vector<std::string> keys;
  const auto add = [&](const std::string& key) {
    if (!key.empty() && std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
  };
  const auto add_points = [&](const std::vector<StudyPoint>& points) {
    for (const StudyPoint& point : points) {
      for (const Setting& s : point.settings) add(s.key);
    }
  };
  for (const StudyAxis& axis : study.axes) {
    add(axis.key);
    add_points(axis.values);
  }
  add_points(study.runs);
  return keys;
}

Scenario ScenarioOf(const Study& study, const StudyRun& run) {
  try {
    std::vector<Setting> settings = study.set;
    settings.insert(settings.end(), run.settings.begin(), run.settings.end());
    const std::string folder = std::filesystem::path(study.path).parent_path().string();
    Scenario scenario = ReadScenario(study.base, settings, folder);
    if (scenario.nodes.compute.kind == trainer::ComputeCost::kMeasured) {
      throw std::invalid_argument(fmt::format(
          "{}: nodes.compute.kind: measured times a step on this machine, which would differ from "
          "run to run; set kind=fixed and nodes.compute.step_time, or kind=flops",
          study.path));
    }
    std::vector<std::string> domains;
    for (const trainer::DomainConfig& domain : scenario.data.domains)
      domains.push_back(domain.name);
    for (const auto& [domain, loss] : study.target_loss) {
      if (domain.empty() || std::ranges::find(domains, domain) != domains.end()) continue;
      FailAt(study.target_place, fmt::format("target_loss: the data has no domain {}{}",
                                             Quoted(domain), Suggestion(domain, domains)));
    }
    scenario.name = run.name;
    scenario.output.log.clear();
    scenario.output.world.clear();
    return scenario;
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(fmt::format("{} (run {})", error.what(), run.name));
  }
}

}  // namespace spes::scenarios
