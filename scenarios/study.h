// A study: runs of one scenario that differ in a few of its keys.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/reader.h"
#include "scenarios/scenario.h"
#include "scenarios/yaml_tree.h"

namespace spes::scenarios {

// grid: every combination of the axes' values; zipped: the first values of all, the second of all,
// …; random: draws from each axis; list: the runs that are written out.
enum class StudyMode { kGrid, kZipped, kRandom, kList };

// What one value of an axis, or one run of a list, sets.
struct StudyPoint {
  std::string label;  // empty: a run without a name of its own
  std::vector<Setting> settings;
  Place place;
};

// From `from` to `to`, both with the same unit behind the number or both without.
struct StudyRange {
  std::string from, to;
  bool log = false;    // evenly in the logarithm
  bool whole = false;  // whole numbers, both ends included
};

struct StudyAxis {
  std::string name;  // what its values are values of
  std::string key;   // the one that it sets; empty: each value says its own
  std::vector<StudyPoint> values;
  std::optional<StudyRange> range;  // of mode random, in place of values
  Place place;
};

struct SlurmSection {
  std::string partition;          // empty: the cluster's default, as the following
  std::optional<sim::Time> time;  // of a run
  std::int64_t memory_bytes = 0;  // of a run
  int gpus = 0;
  int cpus = 0;
  std::vector<std::string> extra;  // further options of sbatch, one each
};

struct BudgetSection {
  int runs = 0;                        // largest number of them; 0: any
  std::optional<sim::Time> wall_time;  // of a run
};

struct Study {
  std::string name;  // empty: the file's, without folder and ending
  std::string path;  // of the file
  std::string base;  // the scenario, an existing file
  std::vector<Setting> set;
  StudyMode mode = StudyMode::kGrid;
  std::vector<StudyAxis> axes;
  std::vector<StudyPoint> runs;      // of mode list
  int samples = 0;                   // of mode random
  std::uint64_t draw_seed = 1;       // of mode random
  std::vector<std::uint64_t> seeds;  // none: the scenario's own
  BudgetSection budget;
  Place budget_place;
  // Held-out loss to reach, by domain, or of their mean under ""; empty: none.
  std::map<std::string, double> target_loss;
  Place target_place;
  SlurmSection slurm;
  std::string output;  // folder
};

// Reads a study file, of that path or else of the installed scenarios. Throws std::invalid_argument
// with one line "file:line: …": an unknown key (and the nearest), a missing base, an axis without
// values, what does not go with the mode.
Study ReadStudy(const std::string& path);

// A short text for a value: a scalar as it is, a .yaml file its name alone.
std::string LabelOf(const Tree& value);

// One run of a study.
struct StudyRun {
  std::string name;                 // unique in the study, fit for a file's name
  std::string point;                // the same without the seed
  std::vector<std::string> labels;  // of each axis, in the study's order
  std::vector<Setting> settings;    // in the order in which they are made, the seed's last
};

// All runs, in an order that depends on the study alone. Reads no file. Throws
// std::invalid_argument with one line: two runs of one name, two axes that set the same key, more
// runs than the budget allows.
std::vector<StudyRun> StudyRuns(const Study& study);

// The keys that differ between runs, in the order of the study.
std::vector<std::string> VariedKeys(const Study& study);

// The run's scenario, resolved and valid, under the run's name and without files for output. Throws
// std::invalid_argument with one line that names the run.
Scenario ScenarioOf(const Study& study, const StudyRun& run);

}  // namespace spes::scenarios
