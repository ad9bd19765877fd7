#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "scenarios/csv.h"
#include "scenarios/describe_parts.h"
#include "scenarios/folders.h"
#include "scenarios/section_reader.h"
#include "scenarios/study.h"

namespace spes::scenarios {

namespace fs = std::filesystem;

// Static and not in a nameless namespace, where the templates would not find them.
static void Describe(StudyRange& range, Visitor& v) {
  v.OnValue({"from", "Smallest number, with its unit where the key has one."}, &range.from);
  v.OnValue({"to", "Largest number."}, &range.to);
  v.OnValue({"log", "Draw evenly in the logarithm."}, &range.log);
  v.OnValue({"whole", "Draw whole numbers."}, &range.whole);
}

static void Describe(SlurmSection& slurm, Visitor& v) {
  v.OnValue({"partition", "Partition of the jobs. Empty: the cluster's default."},
            &slurm.partition);
  v.OnValue({"time", "Limit of a run's wall time; none: the partition's.", kSomeTime}, &slurm.time);
  v.OnValue(
      {"memory", "Memory of a run. 0 B: the partition's default.", kNotNegative, Unit::kByteSize},
      &slurm.memory_bytes);
  v.OnValue({"gpus", "GPUs of a run.", kNotNegative}, &slurm.gpus);
  v.OnValue({"cpus", "Cores of a run. 0: the partition's default.", kNotNegative}, &slurm.cpus);
  v.OnValue({"extra", "Further options of sbatch, such as '--account=me'."}, &slurm.extra);
}

static void Describe(BudgetSection& budget, Visitor& v) {
  v.OnValue({"runs", "Largest number of runs; a study with more is refused. 0: any number.",
             kNotNegative},
            &budget.runs);
  v.OnValue({"wall_time", "A run that takes longer is ended and counts as failed; none: no limit.",
             kSomeTime},
            &budget.wall_time);
}

namespace {

constexpr int kMaxSeeds = 100'000;

// An axis and a study as they are written, the parts of free form still YAML.
struct AxisText {
  std::string name, key;
  Tree values;
  StudyRange range;
};

struct StudyText {
  Study study;
  std::vector<AxisText> axes;
  Tree set, runs, seeds, target_loss;
};

void Describe(AxisText& axis, Visitor& v) {
  v.OnValue({"name", "What the runs' names call it. Empty: the last part of its key."}, &axis.name);
  v.OnValue({"key", "The key that it sets, as a dotted path; without it each value says its own."},
            &axis.key);
  v.OnTree({"values", "What the key becomes; without a key, mappings of a label and dotted keys."},
           axis.values);
  Part(v, "range", "Numbers to draw from in place of values; of mode random.", axis.range);
}

void DescribeStudy(StudyText& text, Visitor& v) {
  Study& study = text.study;
  v.OnValue({"name", "Name of the study. Empty: that of the file, without folder and ending."},
            &study.name);
  v.OnValue({"base", "The scenario that the runs vary.", {}, Unit::kInputFile}, &study.base);
  v.OnTree({"set", "Keys, as dotted paths, that all runs change in the scenario."}, text.set);
  OneOf<StudyMode>(v,
                   {"mode",
                    "How the axes make runs: grid, every combination; zipped, value by value; "
                    "random, draws; list, the runs are written out under `runs`."},
                   study.mode,
                   {{"grid", StudyMode::kGrid},
                    {"zipped", StudyMode::kZipped},
                    {"random", StudyMode::kRandom},
                    {"list", StudyMode::kList}});
  Many(v, "axes", "What is varied.", text.axes);
  v.OnTree({"runs", "Of mode list: a mapping of dotted keys for each run, and its name if wished."},
           text.runs);
  v.OnValue({"samples", "Of mode random: number of draws.", kNotNegative}, &study.samples);
  v.OnValue({"seed", "Of mode random: seed of the draws."}, &study.draw_seed);
  v.OnTree({"seeds",
            "Seeds that every run is made with: a list, or a number n for 1 to n. Without it, the "
            "scenario's."},
           text.seeds);
  Part(v, "budget", "What the study may cost.", study.budget);
  v.OnTree({"target_loss",
            "Held-out loss, nats per token, to which the collection gives time and bytes: of the "
            "domains' mean, or a mapping of domains."},
           text.target_loss);
  Part(v, "slurm", "What a run asks of a cluster.", study.slurm);
  v.OnValue({"output", "Folder of the runs. Empty: results/runs/<name of the study>."},
            &study.output);
}

// Of keys that the sweep itself sets.
void CheckKey(const std::string& key, const Place& place) {
  for (const char* taken : {"name", "output.log", "output.world", "output"}) {
    if (key == taken) {
      FailAt(place, fmt::format(
                        "{}: the study gives each run its own; leave this out{}", key,
                        key == "output" ? ", and name single keys such as output.eval_every" : ""));
    }
  }
}

std::vector<Setting> Settings(const Tree& map, const std::string& except) {
  std::vector<Setting> settings;
  for (std::size_t i = 0; i < map.keys.size(); ++i) {
    const Tree::Key& key = map.keys[i];
    if (key.name == except) continue;
    CheckKey(key.name, key.place);
    settings.push_back({key.name, map.items[i], key.place});
  }
  return settings;
}

// A mapping of dotted keys, with a text under `label_key` if it is there.
StudyPoint PointOf(const Tree& map, const std::string& what, const std::string& label_key) {
  if (map.kind != Tree::Kind::kMap) {
    FailAt(map.place,
           fmt::format("{}: must be a mapping of {} and keys such as sync.every", what, label_key));
  }
  StudyPoint point;
  point.place = map.place;
  if (const Tree* label = map.Find(label_key)) {
    if (label->kind != Tree::Kind::kScalar) {
      FailAt(label->place, fmt::format("{}: {} must be a text", what, label_key));
    }
    point.label = label->text;
  }
  point.settings = Settings(map, label_key);
  return point;
}

// The items of a list that may not be empty.
const std::vector<Tree>& Items(const Tree& list, const Place& place, const std::string& what) {
  const bool list_kind = list.kind == Tree::Kind::kList;
  if (list.kind == Tree::Kind::kNull || (list_kind && list.items.empty())) {
    FailAt(place, fmt::format("{}: is empty; it needs at least one item", what));
  }
  if (!list_kind) FailAt(place, fmt::format("{}: must be a list", what));
  return list.items;
}

StudyAxis AxisOf(const AxisText& text, StudyMode mode, const std::string& path,
                 const Place& place) {
  StudyAxis axis{.name = text.name, .key = text.key, .values = {}, .range = {}, .place = place};
  const bool range = !text.range.from.empty() || !text.range.to.empty();
  if (range && mode != StudyMode::kRandom) {
    FailAt(place, path + ": a range is for mode: random; list the values");
  }
  if (axis.name.empty() && axis.key.empty()) {
    FailAt(place, path +
                      ": an axis needs a key that it sets, such as sync.every, or a name for "
                      "values that set several");
  }
  if (!axis.key.empty()) CheckKey(axis.key, place);
  if (range) {
    if (text.values.kind != Tree::Kind::kNull) {
      FailAt(place, path + ": has values and a range; leave one of them out");
    }
    if (axis.key.empty()) FailAt(place, path + ": a range needs the key that it is for");
    axis.range = text.range;
    return axis;
  }
  const std::string values = path + ".values";
  for (const Tree& item : Items(text.values, place, values)) {
    if (!axis.key.empty()) {
      if (item.kind == Tree::Kind::kNull) FailAt(item.place, values + ": an item has no value");
      axis.values.push_back({LabelOf(item), {{axis.key, item, item.place}}, item.place});
      continue;
    }
    axis.values.push_back(PointOf(item, values, "label"));
    if (axis.values.back().label.empty()) {
      FailAt(item.place, values + ": a value that sets several keys needs a label");
    }
  }
  return axis;
}

std::uint64_t SeedOf(const Tree& tree) {
  std::uint64_t seed = 0;
  const char* const end = tree.text.data() + tree.text.size();
  const auto [rest, error] = std::from_chars(tree.text.data(), end, seed);
  if (tree.kind != Tree::Kind::kScalar || error != std::errc{} || rest != end) {
    FailAt(tree.place, "seeds: must be a list of whole numbers such as [1, 2, 3], or how many");
  }
  return seed;
}

std::vector<std::uint64_t> SeedsOf(const Tree& tree) {
  std::vector<std::uint64_t> seeds;
  if (tree.kind == Tree::Kind::kList) {
    for (const Tree& item : Items(tree, tree.place, "seeds")) seeds.push_back(SeedOf(item));
    return seeds;
  }
  const std::uint64_t count = SeedOf(tree);
  if (count < 1 || count > kMaxSeeds) {
    FailAt(tree.place, fmt::format("seeds: their number must be from 1 to {}", kMaxSeeds));
  }
  for (std::uint64_t seed = 1; seed <= count; ++seed) seeds.push_back(seed);
  return seeds;
}

double LossOf(const Tree& tree) {
  double loss = 0;
  const char* const end = tree.text.data() + tree.text.size();
  const auto [rest, error] = std::from_chars(tree.text.data(), end, loss);
  if (tree.kind != Tree::Kind::kScalar || error != std::errc{} || rest != end || !(loss > 0)) {
    FailAt(tree.place, "target_loss: must be a loss above 0, or a mapping of domains to losses");
  }
  return loss;
}

std::map<std::string, double> TargetOf(const Tree& tree) {
  if (tree.kind != Tree::Kind::kMap) return {{"", LossOf(tree)}};
  std::map<std::string, double> losses;
  for (std::size_t i = 0; i < tree.keys.size(); ++i) {
    losses[tree.keys[i].name] = LossOf(tree.items[i]);
  }
  return losses;
}

void CheckMode(const Study& study, const StudyText& text, const Tree& file) {
  const auto place = [&](const char* key) {
    for (const Tree::Key& k : file.keys) {
      if (k.name == key) return k.place;
    }
    return Place{study.path, 0};
  };
  const bool list = study.mode == StudyMode::kList, random = study.mode == StudyMode::kRandom;
  if (list && !text.axes.empty()) FailAt(place("axes"), "axes: have no place in mode: list");
  if (!list && text.runs.kind != Tree::Kind::kNull) {
    FailAt(place("runs"), "runs: are for mode: list");
  }
  for (const char* key : {"samples", "seed"}) {
    if (!random && file.Find(key) != nullptr) {
      FailAt(place(key), fmt::format("{}: is for mode: random{}", key,
                                     key[1] == 'e' ? "; the runs' own are `seeds`" : ""));
    }
  }
  if (random && study.samples < 1) FailAt(place("samples"), "samples: must be at least 1");
  if ((random || study.mode == StudyMode::kZipped) && text.axes.empty()) {
    FailAt(place("mode"), "axes: this mode needs at least one");
  }
  if (study.mode == StudyMode::kGrid && text.axes.empty() && study.seeds.empty()) {
    FailAt(place("axes"), "nothing varies; a study needs axes, seeds or a list of runs");
  }
}

}  // namespace

Study ReadStudy(const std::string& path) {
  std::string file = path;
  std::error_code ignored;
  if (!fs::exists(path, ignored)) file = FindFile(path, {InstalledScenarios()}).value_or(path);
  const Tree tree = ReadYaml(file);
  if (tree.kind != Tree::Kind::kMap) FailAt(tree.place, "a study is a mapping of keys to values");

  StudyText text;
  Study& study = text.study;
  study.path = file;
  Origins origins;
  origins.Set("", file);
  ReadSection(tree, "", "study",
              {.visit = [&](Visitor& v) { DescribeStudy(text, v); }, .reset = {}},
              {.folder = fs::path(file).parent_path(), .bases = false}, origins);
  const auto place = [&](const std::string& key) {
    for (const Tree::Key& k : tree.keys) {
      if (k.name == key) return k.place;
    }
    return Place{file, 0};
  };
  if (study.name.empty()) study.name = fs::path(file).stem().string();
  if (study.base.empty()) {
    FailAt({file, 0}, "base: is missing; a study names the scenario that it varies");
  }
  if (study.output.empty()) study.output = (fs::path("results") / "runs" / study.name).string();
  if (text.seeds.kind != Tree::Kind::kNull) study.seeds = SeedsOf(text.seeds);
  CheckMode(study, text, tree);
  if (text.set.kind != Tree::Kind::kNull) {
    if (text.set.kind != Tree::Kind::kMap) {
      FailAt(place("set"), "set: must be a mapping of keys such as sync.every");
    }
    study.set = Settings(text.set, "");
  }
  const Tree* const axes = tree.Find("axes");
  for (std::size_t i = 0; i < text.axes.size(); ++i) {
    study.axes.push_back(
        AxisOf(text.axes[i], study.mode, fmt::format("axes.{}", i), axes->items[i].place));
  }
  if (study.mode == StudyMode::kList) {
    for (const Tree& run : Items(text.runs, place("runs"), "runs")) {
      study.runs.push_back(PointOf(run, "runs", "name"));
    }
  }
  if (text.target_loss.kind != Tree::Kind::kNull) study.target_loss = TargetOf(text.target_loss);
  study.target_place = place("target_loss");
  study.budget_place = place("budget");
  return std::move(text.study);
}

}  // namespace spes::scenarios
