// spes-sim: reads a scenario and runs it.
#include <CLI/CLI.hpp>
#include <exception>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "analysis/version.h"
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

constexpr int kUsersMistake = 2, kFailure = 3;

// An error's first line: some libraries append a stack trace to their messages.
int Report(const std::string& what, int code) {
  std::cerr << "spes-sim: " << what.substr(0, what.find('\n')) << std::endl;
  return code;
}

int Main(int argc, char** argv) {
  CLI::App app("Trains a mixture-of-experts language model with SPES on simulated nodes.");
  app.set_version_flag("--version", std::string("spes-sim ") + spes::analysis::ProgramVersion());
  app.require_subcommand(0, 1);

  std::string path, output, seed, workers, devices;
  std::vector<std::string> overrides;
  bool quiet = false, print = false;
  app.add_option("SCENARIO", path, "YAML file of the run");
  app.add_option("--set", overrides, "Change one key, for example --set sync.every=50; repeatable")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  app.add_option("--output", output, "Where the log goes (HDF5); the world is saved beside it")
      ->type_name("RUN.h5");
  app.add_option("--workers", workers, "Threads that train; results do not depend on it")
      ->type_name("N");
  app.add_option("--devices", devices, "What models are computed on: cpu, or cuda:0,cuda:1 …")
      ->type_name("LIST");
  app.add_option("--seed", seed, "Seed of everything random")->type_name("S");
  app.add_flag("--quiet", quiet, "No progress and no summary");
  std::string transport, serve, join;
  std::vector<int> nodes;
  bool resume = false;
  app.add_option("--transport", transport,
                 "sim, or tcp: real connections; without --serve or --join all on this machine")
      ->type_name("KIND");
  app.add_option("--serve", serve, "Be the coordinator of a real run and listen there")
      ->type_name("HOST:PORT");
  app.add_option("--join", join, "Be a node of a real run; the coordinator listens there")
      ->type_name("HOST:PORT");
  app.add_option("--node", nodes,
                 "With --join: the node to be; without, the coordinator chooses. With --serve: a "
                 "node that the coordinator's process trains too; repeatable")
      ->type_name("K")
      ->allow_extra_args(false);
  app.add_flag("--resume", resume,
               "Go on with the run in output.journal; real runs always do where there is one");
  spes::app::EventLogOptions log;
  app.add_option("--log-format", log.format,
                 "Events as lines of text or json, to --log-file or else to standard error")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"text", "json"}));
  app.add_option("--log-file", log.file, "Events of this process are added to this file")
      ->type_name("PATH");
  app.add_flag("--print-config", print, "Print the scenario with all its values, and end");
  CLI::App* plan = app.add_subcommand(
      "plan", "Predict the time of rounds from costs and network, without training");
  std::string plan_format = "text";
  int plan_rounds = 3;
  plan->add_option("SCENARIO", path, "YAML file of the run")->required();
  plan->add_option("--set", overrides, "Change one key, as for a run; repeatable")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
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
  if (schema->parsed()) {
    std::cout << spes::scenarios::ScenarioSchema();
    return 0;
  }
  if (sweep.parsed()) return sweep.Run();
  if (keys.parsed()) return keys.Run();
  if (wan.parsed()) return wan.Run();
  if (path.empty()) return Report("which scenario? Give a YAML file; see --help", kUsersMistake);
  if (!output.empty()) overrides.push_back("output.log=" + output);
  if (!workers.empty()) overrides.push_back("workers=" + workers);
  if (!devices.empty()) overrides.push_back("devices=[" + devices + "]");
  if (!seed.empty()) overrides.push_back("seed=" + seed);
  const bool real = !serve.empty() || !join.empty();
  if (!serve.empty() && !join.empty()) {
    return Report("--serve and --join: a process is one of both; see --help", kUsersMistake);
  }
  if (transport.empty() && real) transport = "tcp";
  if (!transport.empty()) overrides.push_back("transport.kind=" + transport);
  spes::scenarios::Scenario scenario = spes::scenarios::ReadScenario(path, overrides);
  if (plan->parsed()) return spes::app::Plan(scenario, plan_rounds, plan_format);
  if (print) {
    std::cout << spes::scenarios::PrintScenario(scenario);
    return 0;
  }
  if (scenario.transport.kind == spes::scenarios::TransportKind::kSim && (real || !nodes.empty())) {
    return Report("--serve, --join and --node are for real runs: --transport tcp", kUsersMistake);
  }
  if (!join.empty()) {
    if (nodes.size() > 1) return Report("--node: a process is one node", kUsersMistake);
    return spes::app::RunTcpNode(
        std::move(scenario),
        {join, nodes.empty() ? std::nullopt : std::optional(nodes.front()), quiet, log});
  }
  return spes::app::Run(std::move(scenario), {quiet, resume, serve, nodes, log});
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
