#include "app/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "analysis/hdf5/log_writer.h"
#include "analysis/summary_text.h"
#include "analysis/version.h"
#include "app/baselines.h"
#include "app/durable_run.h"
#include "app/evaluations.h"
#include "app/exit_code.h"
#include "app/finished_run.h"
#include "app/interrupt.h"
#include "app/memory_report.h"
#include "app/node_processes.h"
#include "app/output_paths.h"
#include "app/prepare.h"
#include "app/run_lines.h"
#include "app/simulation.h"
#include "app/status_board.h"
#include "app/tcp_coordinator.h"
#include "app/terminal.h"
#include "scenarios/printer.h"
#include "scenarios/scenario_hash.h"
#include "scenarios/sync_builder.h"
#include "scenarios/topology_builder.h"
#include "trainer/checkpoint/world_file.h"
#include "trainer/model/cuda_library.h"
#include "trainer/model_node.h"
#include "trainer/runtime/tcp/key_files.h"
#include "trainer/runtime/tcp/member_events.h"

namespace spes::app {

namespace {

namespace fs = std::filesystem;

// One run's moving parts and the order in which they end.
class RunOfScenario {
 public:
  // `events` must outlive this.
  RunOfScenario(scenarios::Scenario scenario, const RunOptions& options, EventLog& events);
  ~RunOfScenario() {
    if (engine_) events_.SetClock([last = engine_->NowSeconds()] { return last; });
  }
  RunOfScenario(const RunOfScenario&) = delete;
  RunOfScenario& operator=(const RunOfScenario&) = delete;
  int Run();

 private:
  using Clock = std::chrono::steady_clock;

  Durability Open(const std::string& scenario_hash);
  void SayWhatBegins();
  void MakeStatus(const std::string& scenario_hash, std::int32_t rounds);
  void MakeEngine(const scenarios::ScenarioIdentity& identity, Durability durability);
  void Begin();
  void OnPublished(const trainer::PublishedRound& published);
  void Save(const trainer::PublishedRound& published);
  void Tell(EventLevel level, std::string_view event, const std::string& line);
  void Tick();
  void ShowWaiting();
  void ShowStatus() {
    if (status_) status_->Tick(*engine_, *summary_, stop_);
  }
  int RunOver();
  void Finish();
  void PrintSummary(double set_up_s, double simulation_s);

  scenarios::Scenario scenario_;
  RunOptions options_;
  EventLog& events_;
  bool says_little_;  // on standard error: nothing but errors, or events
  OutputPaths paths_;
  Clock::time_point start_ = Clock::now();
  std::atomic<bool>& stop_ = InstallInterruptHandlers();  // set by a failure, too
  ProcessStart memory_at_start_;
  std::shared_ptr<const trainer::Dataset> dataset_;
  trainer::World first_world_;
  std::unique_ptr<analysis::Recorder> log_;
  std::unique_ptr<analysis::RunSummary> summary_;
  std::unique_ptr<analysis::TeeRecorder> recorder_;
  trainer::PublishedRound last_;
  std::int32_t saved_ = 0;                     // the last round whose world is in its file
  std::optional<std::int32_t> resumed_after_;  // round
  std::int64_t steps_before_ = 0;              // all nodes', in the processes before this one
  bool over_ = false;                          // and nothing is left to do
  Baselines baselines_;
  std::unique_ptr<Evaluations> evaluations_;
  std::unique_ptr<trainer::Journal> journal_;
  HoldBack hold_back_;
  std::unique_ptr<StatusBoard> status_;  // null: nobody watches
  std::unique_ptr<Engine> engine_;
  std::string alone_at_;  // address for nodes of this machine; empty: they are not ours to start
  std::string token_;     // of these, where the scenario has no keys
  std::unique_ptr<NodeProcesses> processes_;
  std::unique_ptr<RunLines> lines_;  // null: in simulation
  Clock::time_point waiting_said_ = {};
  std::string waiting_for_;
  ProgressDisplay display_;
  trainer::ComputePool pool_;  // ends first: its jobs use all of the above
};

RunOfScenario::RunOfScenario(scenarios::Scenario scenario, const RunOptions& options,
                             EventLog& events)
    : scenario_(std::move(scenario)),
      options_(options),
      events_(events),
      says_little_(options.quiet || options.log.takes_standard_error()),
      paths_(CheckedOutputPaths(scenario_)),
      display_(says_little_),
      pool_(scenario_.workers) {
  const int nodes = scenarios::NodeCount(scenario_);
  memory_at_start_.program_bytes = ResidentBytes();
  dataset_ = OpenData(scenario_);
  memory_at_start_.data_bytes = ResidentBytes() - memory_at_start_.program_bytes;
  first_world_ = FirstWorld(scenario_);
  const bool real = scenario_.transport.kind == scenarios::TransportKind::kTcp;
  if (!real) Calibrate(scenario_, first_world_, *dataset_);
  const scenarios::ScenarioIdentity identity = scenarios::IdentityOf(scenario_);
  events_.Say(EventLevel::kInfo, "start",
              fmt::format("{} {} with spes-sim {}", scenario_.name, identity.hash,
                          analysis::ProgramVersion()));
  Durability durability = Open(identity.hash);

  const trainer::Schedule schedule(scenarios::BuildSchedule(scenario_), *first_world_.table);
  summary_ = std::make_unique<analysis::RunSummary>(
      analysis::RunPlan{nodes, scenario_.training.steps, schedule.rounds(), real,
                        resumed_after_.value_or(0) + 1, steps_before_ / nodes});
  const std::vector<analysis::Recorder*> first{summary_.get(), &events_};
  recorder_ = real ? std::make_unique<trainer::MemberEvents>(first)
                   : std::make_unique<analysis::TeeRecorder>(first);
  if (real) {
    const double patience_s = sim::ToSeconds(scenario_.sync.patience);
    lines_ = std::make_unique<RunLines>(!options_.serve.empty(), patience_s,
                                        [this](const std::string& line) { display_.Print(line); });
    recorder_->Add(lines_.get());
  }
  events_.SetLastRound(schedule.rounds());
  events_.SetRound(std::min(resumed_after_.value_or(0) + 1, schedule.rounds()));
  evaluations_ =
      std::make_unique<Evaluations>(scenario_.model, scenario_.devices.front(), dataset_,
                                    scenario_.training.context, pool_, *recorder_, stop_);
  try {
    if (!scenario_.transport.status.empty()) MakeStatus(identity.hash, schedule.rounds());
    MakeEngine(identity, std::move(durability));

    if (over_) return;
    SayWhatBegins();
    // Nothing can be refused any more: only now may an older log go.
    analysis::RunInfo info;
    info.scenario = scenarios::PrintScenario(scenario_);
    info.scenario_hash = identity.hash;
    info.seed = scenario_.seed;
    log_ = analysis::MakeHdf5Recorder(paths_.log, info);
  } catch (...) {
    stop_ = true;  // the pool waits for what has begun
    throw;
  }
  recorder_->Add(log_.get());
  baselines_.Begin(dataset_, scenario_.training.context, pool_);
}

// What the journal has, if anything.
Durability RunOfScenario::Open(const std::string& scenario_hash) {
  const bool real = scenario_.transport.kind == scenarios::TransportKind::kTcp;
  std::vector<std::string> warnings;
  OpenedJournal opened = OpenJournal(scenario_, JournalFolder(scenario_), scenario_hash,
                                     first_world_.table, real || options_.resume, warnings);
  journal_ = std::move(opened.journal);
  Durability& durability = opened.durability;
  durability.nodes.warn = [this](const std::string& line) {
    Tell(EventLevel::kWarning, "damaged", line);
  };
  durability.nodes.hold_back = &hold_back_;
  for (const std::string& warning : warnings) durability.nodes.warn(warning);
  if (journal_) {
    durability.journal = [this](const trainer::CoordinatorState& state) {
      if (hold_back_.begun()) return journal_->Write(state);
      hold_back_.Later([this, state] { journal_->Write(state); });
    };
  }
  if (durability.resume) {
    const std::int32_t round = durability.resume->round;
    resumed_after_ = round;
    steps_before_ = durability.resume->step * scenarios::NodeCount(scenario_);
    const std::string complete =
        durability.resume->step >= scenario_.training.steps
            ? CompleteLogOf(paths_.log, trainer::WorldHash(durability.resume->world))
            : std::string();
    over_ = !complete.empty();
    if (over_) {
      Tell(EventLevel::kInfo, "over",
           fmt::format("this run is over (round {} of {}), its log is {}; remove {} to begin anew",
                       round, round, complete, durability.nodes.folder));
      return std::move(durability);
    }
    paths_.log = fs::path(paths_.log).replace_extension(fmt::format(".from-{}.h5", round)).string();
  } else if (options_.resume) {
    throw std::invalid_argument(
        "--resume: there is nothing to go on with; output.journal must name the folder of a run");
  }
  return std::move(durability);
}

void RunOfScenario::SayWhatBegins() {
  if (resumed_after_) {
    Tell(
        EventLevel::kInfo, "resume",
        fmt::format("going on after round {}; this part's log is {}", *resumed_after_, paths_.log));
  } else if (scenario_.transport.kind == scenarios::TransportKind::kTcp) {
    Tell(EventLevel::kInfo, "new run",
         fmt::format("a new run; journal in {}",
                     fs::absolute(JournalFolder(scenario_)).lexically_normal().string()));
  }
}

void RunOfScenario::MakeStatus(const std::string& scenario_hash, std::int32_t rounds) {
  trainer::StatusReport plan;
  plan.program_version = analysis::ProgramVersion();
  plan.scenario = scenario_.name;
  plan.scenario_hash = scenario_hash;
  plan.rounds = rounds;
  plan.steps = scenario_.training.steps;
  plan.nodes.resize(static_cast<std::size_t>(scenarios::NodeCount(scenario_)));
  status_ =
      std::make_unique<StatusBoard>(scenario_.transport.status, std::move(plan),
                                    scenario_.training.sequences * scenario_.training.context);
  recorder_->Add(status_.get());
  Tell(EventLevel::kInfo, "status", fmt::format("status page at http://{}/", status_->address()));
  if (!status_->loopback()) {
    Tell(EventLevel::kWarning, "status",
         fmt::format(
             "transport.status: whoever reaches {} sees this run; nothing is encrypted there",
             status_->address()));
  }
}

void RunOfScenario::MakeEngine(const scenarios::ScenarioIdentity& identity, Durability durability) {
  const auto on_published = [this](const trainer::PublishedRound& published) {
    OnPublished(published);
  };
  if (scenario_.transport.kind == scenarios::TransportKind::kSim) {
    engine_ = std::make_unique<Simulation>(scenario_, first_world_, *dataset_, pool_, *recorder_,
                                           stop_, on_published, std::move(durability));
    return;
  }
  const bool alone = options_.serve.empty();
  ServeSetup setup{alone ? "127.0.0.1:0" : options_.serve, options_.trains, identity};
  // This machine may have other users.
  if (alone && scenario_.transport.keys.empty()) setup.token = token_ = trainer::NewToken();
  auto coordinator =
      std::make_unique<TcpCoordinator>(scenario_, setup, first_world_, *dataset_, pool_, *recorder_,
                                       stop_, on_published, std::move(durability));
  first_world_.blocks = {};  // memory for a whole world; the coordinator goes on to others
  if (alone) {
    alone_at_ = coordinator->address();
  } else {
    Tell(EventLevel::kInfo, "listen", fmt::format("listening on {}", coordinator->address()));
  }
  engine_ = std::move(coordinator);
}

// From here on there is a run, which a later process may find.
void RunOfScenario::Begin() {
  events_.SetClock([this] { return engine_->NowSeconds(); });
  hold_back_.Begin();
  if (alone_at_.empty()) return;
  processes_ = std::make_unique<NodeProcesses>(scenario_, alone_at_, JournalFolder(scenario_),
                                               options_.trains, token_, display_);
}

void RunOfScenario::OnPublished(const trainer::PublishedRound& published) {
  last_ = published;
  if (over_) return;
  const bool last = published.step >= scenario_.training.steps;
  const int every = scenario_.output.eval_every;
  if (published.round == 0 || last || (every > 0 && published.round % every == 0)) {
    evaluations_->Submit(published);
  }
  const int save_every = scenario_.output.world_every;
  const bool due = last || (save_every > 0 && published.round % save_every == 0);
  if (published.round > 0 && due) Save(published);
}

void RunOfScenario::Save(const trainer::PublishedRound& published) {
  const auto save = [&] {
    trainer::SaveWorld(published.world, WorldMetadata(scenario_, published), paths_.world);
  };
  engine_ ? engine_->Work(save) : save();  // it is being made: the world that it goes on from
  saved_ = published.round;
  recorder_->Record(analysis::EventRecord{published.virtual_s, trainer::kCoordinator, "world saved",
                                          paths_.world});
}

// A line for people and the event log.
void RunOfScenario::Tell(EventLevel level, std::string_view event, const std::string& line) {
  events_.Say(level, event, line);
  if (options_.log.takes_standard_error()) return;
  if (level != EventLevel::kInfo) {
    display_.End();
    std::cerr << "spes-sim: warning: " << line << std::endl;
  } else if (!options_.quiet) {
    std::cerr << line << std::endl;
  }
}

void RunOfScenario::Tick() {
  if (processes_) {
    processes_->Tend(engine_->coordinator()->round(), [this](int node) {
      return !engine_->coordinator()->quarantine(node).empty();
    });
  }
  evaluations_->Collect();
  analysis::Progress progress = summary_->progress();
  progress.virtual_s = engine_->NowSeconds();
  // The records come when results arrive; work goes on all the time.
  const std::int64_t done = engine_->steps_done();
  const auto whole = static_cast<double>(scenario_.training.steps * engine_->allocation().nodes());
  const std::int64_t step_tokens = scenario_.training.sequences * scenario_.training.context;
  // Above 1 where faults have made nodes train steps again.
  progress.done = std::min(1.0, static_cast<double>(done) / whole);
  progress.done_before = static_cast<double>(steps_before_) / whole;
  progress.tokens = done * step_tokens;
  progress.tokens_before = steps_before_ * step_tokens;
  if (lines_) ShowWaiting();
  display_.Show(progress);
  ShowStatus();
}

// Behind the progress, and as an event when it changes and every minute.
void RunOfScenario::ShowWaiting() {
  constexpr std::chrono::minutes kAgain{1};
  const RunLines::Waiting waiting =
      lines_->WaitingFor(*engine_->coordinator(), engine_->NowSeconds());
  display_.SetNote(waiting.who, waiting.text);
  const Clock::time_point now = Clock::now();
  if (waiting.who == waiting_for_ && now - waiting_said_ < kAgain) return;
  waiting_for_ = waiting.who;
  waiting_said_ = now;
  if (!waiting.who.empty()) events_.Say(EventLevel::kInfo, "waiting", waiting.text);
}

// Nodes that dial for a while are told.
int RunOfScenario::RunOver() {
  if (!options_.serve.empty()) engine_->Run([this] { ShowStatus(); });
  events_.Say(EventLevel::kInfo, "end", "the run is over");
  return InterruptSignal() != 0 ? 128 + InterruptSignal() : 0;
}

int RunOfScenario::Run() {
  if (over_) return RunOver();
  const auto seconds_since = [](Clock::time_point t) {
    return std::chrono::duration<double>(Clock::now() - t).count();
  };
  const double set_up_s = seconds_since(start_);
  try {
    const Clock::time_point began = Clock::now();
    Begin();
    engine_->Run([this] { Tick(); });
    const double simulation_s = seconds_since(began);
    display_.End();
    Finish();
    if (!options_.quiet) PrintSummary(set_up_s, simulation_s);
  } catch (const std::exception& error) {
    stop_ = true;  // the pool waits for what has begun
    display_.End();
    try {
      log_->Finish(analysis::RunStatus::kFailed, "");
    } catch (const std::exception&) {
      // The log itself may be what failed; the first error is the one to report.
    }
    if (dynamic_cast<const trainer::NotOfThisRun*>(&error) != nullptr) throw;
    throw std::runtime_error(error.what());  // underway nothing else is the user's mistake
  }
  return InterruptSignal() != 0 ? 128 + InterruptSignal() : 0;
}

// The world first: whatever fails after it, what has been trained is there.
void RunOfScenario::Finish() {
  if (last_.round > saved_) Save(last_);
  evaluations_->Collect([this] { ShowStatus(); });
  if (!stop_) baselines_.Wait();
  RecordMemory(scenario_, engine_->allocation(), *first_world_.table, pool_.threads(),
               memory_at_start_, *recorder_);
  recorder_->Finish(stop_ ? analysis::RunStatus::kInterrupted : analysis::RunStatus::kComplete,
                    trainer::WorldHash(last_.world));
}

void RunOfScenario::PrintSummary(double set_up_s, double simulation_s) {
  const trainer::BlockTable& table = *first_world_.table;
  const double waited_s = engine_->waited_for_work_s();
  analysis::SummaryContext context;
  context.scenario = scenario_.name;
  context.log_path = paths_.log;
  if (last_.round > 0) context.world_path = paths_.world;
  baselines_.AddTo(context);
  if (resumed_after_) {
    context.notes.push_back(
        fmt::format("resumed after round {}: times, tokens and traffic are of the rounds since",
                    *resumed_after_));
  }
  context.full_round_bytes = table.TotalElements() * trainer::ElementBytes(table.dtype());
  context.full_memory_bytes = NodeBytes(scenario_, table, table.TotalElements());
  context.wall_s = std::chrono::duration<double>(Clock::now() - start_).count();
  const bool real = scenario_.transport.kind == scenarios::TransportKind::kTcp;
  context.wall_parts = {{"set-up", set_up_s}};
  if (real) {
    context.wall_parts.emplace_back("rounds", simulation_s);
  } else {
    context.wall_parts.emplace_back("training, waited for", waited_s);
    context.wall_parts.emplace_back("network and protocol", simulation_s - waited_s);
  }
  context.wall_parts.emplace_back("last evaluations", context.wall_s - set_up_s - simulation_s);
  std::cout << analysis::SummaryText(summary_->totals(), context) << std::flush;
}

}  // namespace

int Run(scenarios::Scenario scenario, const RunOptions& options) {
  trainer::InitLibTorch();
  EventLog events(options.log, trainer::kCoordinator);
  try {
    CheckTrained(options.trains, scenarios::NodeCount(scenario));
    trainer::RequireDevices(scenario.devices);
    return RunOfScenario(std::move(scenario), options, events).Run();
  } catch (const std::exception& error) {
    events.Say(EventLevel::kError, "failed", error.what());
    if (!options.log.takes_standard_error()) throw;
    return ExitCodeOf(error);
  }
}

}  // namespace spes::app
