// spes-sim: reads a scenario and runs it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <exception>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "analysis/version.h"
#include "app/exit_code.h"
#include "app/keys.h"
#include "app/plan.h"
#include "app/run.h"
#include "app/sweep.h"
#include "app/tcp_node.h"
#include "app/wan.h"
#include "scenarios/printer.h"
#include "scenarios/reader.h"
#include "scenarios/schema.h"

namespace {

using spes::app::kFailure;
using spes::app::kUsersMistake;

// An error's first line: some libraries append a stack trace to their messages.
int Report(const std::string& what, int code) {
  std::cerr << "spes-sim: " << what.substr(0, what.find('\n')) << std::endl;
  return code;
}

// Of the program's own options the first that stands before a subcommand, which would not read it;
// empty: none does.
std::string Unread(const CLI::App& app) {
  if (app.get_subcommands().empty()) return "";
  for (const CLI::Option* option : app.get_options()) {
    if (option->count() > 0) return option->get_name();
  }
  return "";
}

// What the command line says of a run.
struct Arguments {
  std::string path, output, seed, workers, devices, transport, serve, join;
  std::vector<std::string> overrides;
  std::vector<int> nodes;
  bool quiet = false, print = false, resume = false;
  spes::app::EventLogOptions log;
};

spes::scenarios::Scenario Read(const Arguments& a) {
  if (a.path.empty()) {
    throw std::invalid_argument("which scenario? Give a YAML file; see --help");
  }
  std::vector<std::string> overrides = a.overrides;
  if (!a.workers.empty()) overrides.push_back("workers=" + a.workers);
  if (!a.devices.empty()) overrides.push_back("devices=[" + a.devices + "]");
  if (!a.seed.empty()) overrides.push_back("seed=" + a.seed);
  if (!a.transport.empty()) {
    overrides.push_back("transport.kind=" + a.transport);
  } else if (!a.serve.empty() || !a.join.empty()) {
    overrides.push_back("transport.kind=tcp");
  }
  spes::scenarios::Scenario scenario = spes::scenarios::ReadScenario(a.path, overrides);
  if (!a.output.empty()) scenario.output.log = a.output;  // as it is: a path is no YAML
  return scenario;
}

int Run(const Arguments& a) {
  const bool real = !a.serve.empty() || !a.join.empty();
  if (!a.serve.empty() && !a.join.empty()) {
    throw std::invalid_argument("--serve and --join: a process is one of both; see --help");
  }
  spes::scenarios::Scenario scenario = Read(a);
  if (a.print) {
    std::cout << spes::scenarios::PrintScenario(scenario);
    return 0;
  }
  if (scenario.transport.kind == spes::scenarios::TransportKind::kSim &&
      (real || !a.nodes.empty())) {
    throw std::invalid_argument("--serve, --join and --node are for real runs: --transport tcp");
  }
  if (a.join.empty()) {
    return spes::app::Run(std::move(scenario), {a.quiet, a.resume, a.serve, a.nodes, a.log});
  }
  if (a.nodes.size() > 1) throw std::invalid_argument("--node: a process is one node");
  if (a.resume) {
    throw std::invalid_argument(
        "--resume: with --join a node goes on by itself with what it has kept; leave it out");
  }
  const spes::app::JoinSetup setup{
      a.join, a.nodes.empty() ? std::nullopt : std::optional(a.nodes.front()), a.quiet, a.log};
  return spes::app::RunTcpNode(std::move(scenario), setup);
}

int Main(int argc, char** argv) {
  CLI::App app("Trains a mixture-of-experts language model with SPES on simulated nodes.");
  app.set_version_flag("--version", std::string("spes-sim ") + spes::analysis::ProgramVersion());
  app.require_subcommand(0, 1);

  Arguments a;
  app.add_option("SCENARIO", a.path, "YAML file of the run");
  app.add_option("--set", a.overrides,
                 "Change one key, for example --set sync.every=50; repeatable")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  app.add_option("--output", a.output, "Where the log goes (HDF5); the world is saved beside it")
      ->type_name("RUN.h5");
  app.add_option("--workers", a.workers, "Threads that train; results do not depend on it")
      ->type_name("N");
  app.add_option("--devices", a.devices, "What models are computed on: cpu, or cuda:0,cuda:1 …")
      ->type_name("LIST");
  app.add_option("--seed", a.seed, "Seed of everything random")->type_name("S");
  app.add_flag("--quiet", a.quiet, "No progress and no summary");
  app.add_option("--transport", a.transport,
                 "sim, or tcp: real connections; without --serve or --join all on this machine")
      ->type_name("KIND");
  app.add_option("--serve", a.serve, "Be the coordinator of a real run and listen there")
      ->type_name("HOST:PORT");
  app.add_option("--join", a.join, "Be a node of a real run; the coordinator listens there")
      ->type_name("HOST:PORT");
  app.add_option("--node", a.nodes,
                 "With --join: the node to be; without, the coordinator chooses. With --serve: a "
                 "node that the coordinator's process trains too; repeatable")
      ->type_name("K")
      ->allow_extra_args(false);
  app.add_flag("--resume", a.resume,
               "Go on with the run in output.journal; real runs always do where there is one");
  app.add_option("--log-format", a.log.format,
                 "Events as lines of text or json, to --log-file or else to standard error")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"text", "json"}));
  app.add_option("--log-file", a.log.file, "Events of this process are added to this file")
      ->type_name("PATH");
  app.add_flag("--print-config", a.print, "Print the scenario with all its values, and end");
  CLI::App* plan = app.add_subcommand(
      "plan", "Predict the time of rounds from costs and network, without training");
  std::string plan_format = "text";
  int plan_rounds = 3;
  plan->add_option("SCENARIO", a.path, "YAML file of the run")->required();
  plan->add_option("--set", a.overrides, "Change one key, as for a run; repeatable")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  plan->add_option("--seed", a.seed, "Seed of everything random")->type_name("S");
  plan->add_option("--rounds", plan_rounds, "Rounds to predict; the table shows their means")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  plan->add_option("--format", plan_format, "text, or csv with a row for each node")
      ->check(CLI::IsMember({"text", "csv"}))
      ->capture_default_str();
  spes::app::SweepCommand sweep(app);
  spes::app::KeysCommand keys(app);
  spes::app::WanCommand wan(app);
  CLI::App* schema = app.add_subcommand("schema", "Print the JSON schema of scenario files");

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help and --version
    return Report(std::string(error.what()) + "; see --help", kUsersMistake);
  }
  if (const std::string option = Unread(app); !option.empty()) {
    throw std::invalid_argument(fmt::format(
        "{}: stands before {}, which does not read it; options go behind the subcommand", option,
        app.get_subcommands().front()->get_name()));
  }
  if (schema->parsed()) {
    std::cout << spes::scenarios::ScenarioSchema();
    return 0;
  }
  if (sweep.parsed()) return sweep.Run();
  if (keys.parsed()) return keys.Run();
  if (wan.parsed()) return wan.Run();
  if (plan->parsed()) return spes::app::Plan(Read(a), plan_rounds, plan_format);
  try {
    return Run(a);
  } catch (const std::exception& error) {
    if (!a.log.takes_standard_error()) throw;
    spes::app::EventLog(a.log, -1).Say(spes::app::EventLevel::kError, "failed", error.what());
    return spes::app::ExitCodeOf(error);
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return Main(argc, argv);
  } catch (const std::invalid_argument& error) {
    return Report(error.what(), kUsersMistake);
  } catch (const std::bad_alloc&) {
    return Report("out of memory", kFailure);
  } catch (const std::exception& error) {
    return Report(error.what(), kFailure);
  }
}
