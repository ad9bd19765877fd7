#include "app/run.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <future>
#include <iostream>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "analysis/hdf5/log_writer.h"
#include "analysis/summary_text.h"
#include "app/evaluations.h"
#include "app/interrupt.h"
#include "app/memory_report.h"
#include "app/simulation.h"
#include "app/terminal.h"
#include "scenarios/catalogue.h"
#include "scenarios/printer.h"
#include "scenarios/scenario_hash.h"
#include "scenarios/sync_builder.h"
#include "scenarios/topology_builder.h"
#include "trainer/checkpoint/world_file.h"
#include "trainer/model/initial_world.h"
#include "trainer/model_node.h"

namespace spes::app {

namespace {

namespace fs = std::filesystem;

trainer::World FirstWorld(const scenarios::Scenario& scenario) {
  auto table = trainer::MakeBlockTable(scenario.model);
  if (!scenario.training.start_from.empty()) {
    return trainer::LoadWorld(std::move(table), scenario.training.start_from);
  }
  return trainer::MakeInitialWorld(scenario.model, std::move(table), scenario.seed);
}

// Where the log and the worlds of a run go, folders made where the program chose them itself.
struct OutputPaths {
  std::string log, world;
};

OutputPaths Outputs(const scenarios::Scenario& scenario) {
  OutputPaths paths{scenario.output.log, scenario.output.world};
  if (paths.log.empty()) {
    const fs::path folder = fs::path("results") / "runs";
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) {
      throw std::invalid_argument(
          fmt::format("{}: cannot make this folder ({}); name another place with --output",
                      folder.string(), error.message()));
    }
    paths.log = (folder / (scenario.name + ".h5")).string();
  }
  if (paths.world.empty()) paths.world = fs::path(paths.log).replace_extension(".safetensors");
  if (fs::absolute(paths.log).lexically_normal() == fs::absolute(paths.world).lexically_normal()) {
    throw std::invalid_argument(fmt::format(
        "{}: the log and the world cannot be one file; name another with output.world", paths.log));
  }
  if (scenario.output.world.empty()) return paths;  // beside the log, which is made at once
  // Better now than when everything has been trained.
  const std::string probe = paths.world + ".probe";
  if (fs::is_directory(paths.world) || !std::ofstream(probe)) {
    throw std::invalid_argument(fmt::format(
        "{}: cannot be written; name a file in a folder that exists and is yours with output.world",
        paths.world));
  }
  fs::remove(probe);
  return paths;
}

// What a saved world says about itself.
std::map<std::string, std::string> WorldMetadata(const scenarios::Scenario& scenario,
                                                 const trainer::PublishedRound& published) {
  const trainer::ModelConfig& m = scenario.model;
  return {{"format", "spes-sim world 1"},
          {"vocabulary", std::to_string(m.vocabulary)},
          {"layers", std::to_string(m.layers)},
          {"width", std::to_string(m.width)},
          {"heads", std::to_string(m.heads)},
          {"kv_heads", std::to_string(m.kv_heads)},
          {"head_width", std::to_string(m.HeadWidth())},
          {"experts", std::to_string(m.experts)},
          {"experts_per_token", std::to_string(m.experts_per_token)},
          {"expert_width", std::to_string(m.expert_width)},
          {"round", std::to_string(published.round)},
          {"step", std::to_string(published.step)},
          {"world_hash", trainer::WorldHash(published.world)}};
}

// One run's moving parts and the order in which they end.
class RunOfScenario {
 public:
  RunOfScenario(scenarios::Scenario scenario, bool quiet);
  int Run();

 private:
  using Clock = std::chrono::steady_clock;

  void OnPublished(const trainer::PublishedRound& published);
  void Save(const trainer::PublishedRound& published);
  void Tick();
  void Finish();
  void PrintSummary(double set_up_s, double simulation_s);

  scenarios::Scenario scenario_;
  bool quiet_;
  OutputPaths paths_;
  Clock::time_point start_ = Clock::now();
  std::atomic<bool> stop_{false};  // set by a signal and by a failure
  ProcessStart memory_at_start_;
  std::shared_ptr<const trainer::Dataset> dataset_;
  trainer::World first_world_;
  std::unique_ptr<analysis::Recorder> log_;
  std::unique_ptr<analysis::RunSummary> summary_;
  std::unique_ptr<analysis::TeeRecorder> recorder_;
  trainer::PublishedRound last_;
  struct BaselineJob {
    std::future<void> done;
    std::shared_ptr<analysis::Baseline> result;
    std::shared_ptr<double> entropy;  // of a synthetic language; otherwise NaN
  };
  std::vector<BaselineJob> baselines_;
  std::unique_ptr<Evaluations> evaluations_;
  std::unique_ptr<Simulation> simulation_;
  ProgressDisplay display_;
  trainer::ComputePool pool_;  // ends first: its jobs use all of the above
};

RunOfScenario::RunOfScenario(scenarios::Scenario scenario, bool quiet)
    : scenario_(std::move(scenario)),
      quiet_(quiet),
      paths_(Outputs(scenario_)),
      display_(quiet),
      pool_(scenario_.workers) {
  InstallInterruptHandlers(stop_);
  scenarios::ResolveCorpora(scenario_.data);
  memory_at_start_.program_bytes = ResidentBytes();
  dataset_ =
      trainer::OpenDataset(scenario_.data, scenario_.model.vocabulary, scenario_.training.context);
  memory_at_start_.data_bytes = ResidentBytes() - memory_at_start_.program_bytes;
  first_world_ = FirstWorld(scenario_);
  Calibrate(scenario_, first_world_, *dataset_);

  const trainer::Schedule schedule(scenarios::BuildSchedule(scenario_), *first_world_.table);
  summary_ = std::make_unique<analysis::RunSummary>(analysis::RunPlan{
      scenarios::NodeCount(scenario_), scenario_.training.steps, schedule.rounds()});
  recorder_ =
      std::make_unique<analysis::TeeRecorder>(std::vector<analysis::Recorder*>{summary_.get()});
  evaluations_ = std::make_unique<Evaluations>(
      scenario_.model, dataset_, scenario_.training.context, pool_, *recorder_, stop_);
  try {
    simulation_ = std::make_unique<Simulation>(
        scenario_, first_world_, *dataset_, pool_, *recorder_, stop_,
        [this](const trainer::PublishedRound& published) { OnPublished(published); });

    // Nothing can be refused any more: only now may an older log go.
    analysis::RunInfo info;
    info.scenario = scenarios::PrintScenario(scenario_);
    info.scenario_hash = scenarios::ScenarioHash(scenario_);
    info.seed = scenario_.seed;
    log_ = analysis::MakeHdf5Recorder(paths_.log, info);
  } catch (...) {
    stop_ = true;  // the pool waits for what has begun
    throw;
  }
  recorder_->Add(log_.get());
  for (int d = 0; d < dataset_->domains(); ++d) {
    auto result = std::make_shared<analysis::Baseline>();
    auto entropy = std::make_shared<double>(std::nan(""));
    result->domain = dataset_->domain(d);
    result->unigram = result->bigram = std::nan("");
    baselines_.push_back({pool_.Submit(sim::kNever,
                                       [this, d, result, entropy] {
                                         const trainer::BaselineLoss loss =
                                             dataset_->Baseline(d, scenario_.training.context);
                                         result->unigram = loss.unigram;
                                         result->bigram = loss.bigram;
                                         *entropy = loss.entropy;
                                       }),
                          result, entropy});
  }
}

void RunOfScenario::OnPublished(const trainer::PublishedRound& published) {
  last_ = published;
  const bool last = published.step >= scenario_.training.steps;
  const int every = scenario_.output.eval_every;
  if (published.round == 0 || last || (every > 0 && published.round % every == 0)) {
    evaluations_->Submit(published);
  }
  const int save_every = scenario_.output.world_every;
  if (!last && published.round > 0 && save_every > 0 && published.round % save_every == 0) {
    Save(published);
  }
}

void RunOfScenario::Save(const trainer::PublishedRound& published) {
  trainer::SaveWorld(published.world, WorldMetadata(scenario_, published), paths_.world);
  recorder_->Record(analysis::EventRecord{published.virtual_s, trainer::kCoordinator, "world saved",
                                          paths_.world});
}

void RunOfScenario::Tick() {
  evaluations_->Collect(false);
  analysis::Progress progress = summary_->progress();
  progress.virtual_s = simulation_->NowSeconds();
  // The records come when results arrive; work goes on all the time.
  const std::int64_t done = simulation_->steps_done();
  progress.done = static_cast<double>(done) /
                  static_cast<double>(scenario_.training.steps * simulation_->allocation().nodes());
  progress.tokens = done * scenario_.training.sequences * scenario_.training.context;
  display_.Show(progress);
}

int RunOfScenario::Run() {
  const auto seconds_since = [](Clock::time_point t) {
    return std::chrono::duration<double>(Clock::now() - t).count();
  };
  const double set_up_s = seconds_since(start_);
  try {
    const Clock::time_point began = Clock::now();
    simulation_->Run([this] { Tick(); });
    const double simulation_s = seconds_since(began);
    display_.End();
    Finish();
    if (!quiet_) PrintSummary(set_up_s, simulation_s);
  } catch (const std::exception& error) {
    stop_ = true;  // the pool waits for what has begun
    display_.End();
    try {
      log_->Finish(analysis::RunStatus::kFailed, "");
    } catch (const std::exception&) {
      // The log itself may be what failed; the first error is the one to report.
    }
    throw std::runtime_error(error.what());  // underway nothing is the user's mistake any more
  }
  return InterruptSignal() != 0 ? 128 + InterruptSignal() : 0;
}

// The world first: whatever fails after it, what has been trained is there.
void RunOfScenario::Finish() {
  if (last_.round > 0) Save(last_);
  evaluations_->Collect(true);
  if (!stop_) {
    for (BaselineJob& job : baselines_) job.done.get();
  }
  RecordMemory(scenario_, simulation_->allocation(), *first_world_.table, pool_.threads(),
               memory_at_start_, *recorder_);
  recorder_->Finish(stop_ ? analysis::RunStatus::kInterrupted : analysis::RunStatus::kComplete,
                    trainer::WorldHash(last_.world));
}

void RunOfScenario::PrintSummary(double set_up_s, double simulation_s) {
  const trainer::BlockTable& table = *first_world_.table;
  const double waited_s = simulation_->waited_for_work_s();
  analysis::SummaryContext context;
  context.scenario = scenario_.name;
  context.log_path = paths_.log;
  if (last_.round > 0) context.world_path = paths_.world;
  for (const BaselineJob& job : baselines_) {
    if (!job.done.valid() || job.done.wait_for(Clock::duration(0)) == std::future_status::ready) {
      context.baselines.push_back(*job.result);
      if (std::isfinite(*job.entropy)) {
        context.notes.push_back(
            fmt::format("{}: the language's entropy is {:.4f} nats per token, the "
                        "least that any model can reach",
                        job.result->domain, *job.entropy));
      }
    }
  }
  context.full_round_bytes = table.TotalElements() * trainer::ElementBytes(table.dtype());
  context.full_memory_bytes = NodeBytes(scenario_, table, table.TotalElements());
  context.wall_s = std::chrono::duration<double>(Clock::now() - start_).count();
  context.wall_parts = {{"set-up", set_up_s},
                        {"training, waited for", waited_s},
                        {"network and protocol", simulation_s - waited_s},
                        {"last evaluations", context.wall_s - set_up_s - simulation_s}};
  std::cout << analysis::SummaryText(summary_->totals(), context) << std::flush;
}

}  // namespace

int Run(scenarios::Scenario scenario, bool quiet) {
  trainer::InitLibTorch();
  return RunOfScenario(std::move(scenario), quiet).Run();
}

}  // namespace spes::app
