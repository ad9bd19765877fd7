#include "app/sweep_collect.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <set>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

#include "analysis/hdf5/table_file.h"
#include "analysis/run_figures.h"
#include "analysis/value_table.h"
#include "scenarios/printer.h"

namespace spes::app {

namespace fs = std::filesystem;

namespace {

using analysis::RunFigures;

struct Row {
  const SweepRun* run;
  RunFigures figures;
};

// What a run has under a key: as its scenario prints it, or, of a section, as the study says it.
std::string SettingText(const SweepRun& run, const std::string& key) {
  std::string text = scenarios::PrintValue(run.scenario, key);
  if (!text.empty()) return text;
  for (const scenarios::Setting& setting : run.plan.settings) {
    if (setting.key == key) text = scenarios::LabelOf(setting.value);
  }
  return text;
}

class TableMaker {
 public:
  TableMaker(const scenarios::Study& study, std::vector<Row> rows)
      : study_(study), rows_(std::move(rows)) {}

  analysis::ValueTable Make() {
    Texts("name", [](const Row& row) { return row.run->plan.name; });
    Seeds();
    Texts("hash", [](const Row& row) { return row.run->hash; });
    Settings();
    Losses();
    Numbers("target_s", [](const RunFigures& f) { return f.target_s; });
    Numbers("target_bytes", [](const RunFigures& f) { return f.target_bytes; });
    Wholes("rounds", [](const RunFigures& f) { return f.rounds; });
    Wholes("steps", [](const RunFigures& f) { return f.steps; });
    Wholes("tokens", [](const RunFigures& f) { return f.tokens; });
    Numbers("virtual_s", [](const RunFigures& f) { return f.virtual_s; });
    Wholes("up_bytes", [](const RunFigures& f) { return f.up_bytes; });
    Wholes("down_bytes", [](const RunFigures& f) { return f.down_bytes; });
    Numbers("node_up_bytes", [](const RunFigures& f) { return f.node_up_bytes; });
    Numbers("node_down_bytes", [](const RunFigures& f) { return f.node_down_bytes; });
    Numbers("node_memory_bytes", [](const RunFigures& f) { return f.node_memory_bytes; });
    Numbers("node_memory_max_bytes", [](const RunFigures& f) { return f.node_memory_max_bytes; });
    Numbers("wall_s", [](const RunFigures& f) { return f.wall_s; });
    Numbers("work_s", [](const RunFigures& f) { return f.work_s; });
    Numbers("process_memory_bytes", [](const RunFigures& f) { return f.process_memory_bytes; });
    return std::move(table_);
  }

 private:
  // An axis may be called as a figure is.
  void Add(analysis::ValueColumn column) {
    while (!names_.insert(column.name).second) column.name += "_";
    table_.columns.push_back(std::move(column));
  }

  std::vector<std::string> AllTexts(const std::function<std::string(const Row&)>& of) const {
    std::vector<std::string> texts;
    for (const Row& row : rows_) texts.push_back(of(row));
    return texts;
  }
  void Texts(const std::string& name, const std::function<std::string(const Row&)>& of) {
    Add({name, AllTexts(of)});
  }
  void Numbers(const std::string& name, const std::function<double(const RunFigures&)>& of) {
    std::vector<double> numbers;
    for (const Row& row : rows_) numbers.push_back(of(row.figures));
    Add({name, std::move(numbers)});
  }
  void Wholes(const std::string& name, const std::function<std::int64_t(const RunFigures&)>& of) {
    std::vector<std::int64_t> numbers;
    for (const Row& row : rows_) numbers.push_back(of(row.figures));
    Add({name, std::move(numbers)});
  }

  void Seeds() {
    Add(analysis::ColumnOfTexts(
        "seed", AllTexts([](const Row& row) { return std::to_string(row.run->scenario.seed); })));
  }

  void Settings() {
    for (std::size_t a = 0; a < study_.axes.size(); ++a) {
      if (!study_.axes[a].key.empty()) continue;  // its key's column says the same
      Texts(study_.axes[a].name, [a](const Row& row) { return row.run->plan.labels[a]; });
    }
    for (const std::string& key : scenarios::VariedKeys(study_)) {
      if (key == "seed") continue;
      Add(analysis::ColumnOfTexts(
          key, AllTexts([&key](const Row& row) { return SettingText(*row.run, key); })));
    }
  }

  void Losses() {
    Numbers("loss", [](const RunFigures& f) { return f.mean_loss.last; });
    Numbers("best_loss", [](const RunFigures& f) { return f.mean_loss.best; });
    std::set<std::string> domains;
    for (const Row& row : rows_) {
      for (const auto& [domain, loss] : row.figures.losses) domains.insert(domain);
    }
    for (const std::string& domain : domains) {
      const auto loss = [&domain](const RunFigures& f) {
        const auto found = f.losses.find(domain);
        return found == f.losses.end() ? analysis::LossFigures{} : found->second;
      };
      Numbers("loss." + domain, [&](const RunFigures& f) { return loss(f).last; });
      Numbers("best_loss." + domain, [&](const RunFigures& f) { return loss(f).best; });
    }
  }

  const scenarios::Study& study_;
  std::vector<Row> rows_;
  analysis::ValueTable table_;
  std::set<std::string> names_;
};

}  // namespace

std::size_t Collect(const LoadedStudy& loaded, const std::string& output) {
  std::vector<Row> rows;
  for (const SweepRun& run : loaded.runs) {
    if (!loaded.folder.Finished(run)) continue;
    rows.push_back({&run, analysis::FiguresOf(analysis::ReadRunLog(loaded.folder.Log(run)),
                                              loaded.study.target_loss)});
  }
  if (rows.empty()) {
    throw std::runtime_error(
        fmt::format("{}: none of its {} runs has finished yet; spes-sim sweep {} runs them",
                    loaded.study.path, loaded.runs.size(), loaded.study.path));
  }
  const std::string folder = output.empty() ? loaded.folder.path() : output;
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    throw std::invalid_argument(fmt::format(
        "{}: cannot make this folder ({}); name another with --output", folder, error.message()));
  }
  const std::size_t count = rows.size();
  const analysis::ValueTable table = TableMaker(loaded.study, std::move(rows)).Make();
  analysis::WriteTextFile((fs::path(folder) / "table.csv").string(), analysis::ToCsv(table));
  analysis::WriteHdf5Table((fs::path(folder) / "table.h5").string(), "runs", table);
  return count;
}

}  // namespace spes::app
