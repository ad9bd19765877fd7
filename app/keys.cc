#include "app/keys.h"

#include <CLI/CLI.hpp>
#include <iostream>

#include "app/output_paths.h"
#include "trainer/runtime/tcp/keys.h"

namespace spes::app {

KeysCommand::KeysCommand(CLI::App& app)
    : command_(app.add_subcommand(
          "keys",
          "Make the certificates and the token with which the nodes of a real run are let in; "
          "what the folder has already is kept")) {
  command_->add_option("FOLDER", folder_, "Where they go; transport.keys names it then")
      ->capture_default_str();
  command_
      ->add_option(
          "--host", hosts_,
          "A name or address by which nodes dial the coordinator, where its certificate is to "
          "be made; repeatable")
      ->type_name("NAME")
      ->allow_extra_args(false);
  command_
      ->add_option("--nodes", nodes_,
                   "Nodes that get a certificate of their own, for transport.mutual")
      ->check(CLI::Range(0, 100'000))
      ->capture_default_str();
  command_
      ->add_option("--days", days_, "That certificates of the coordinator and the nodes are valid")
      ->check(CLI::Range(1, 36'500))
      ->capture_default_str();
}

bool KeysCommand::parsed() const { return command_->parsed(); }

int KeysCommand::Run() const {
  RequireFolderOf(folder_);
  const trainer::Keys keys =
      trainer::MakeKeys({.folder = folder_, .hosts = hosts_, .nodes = nodes_, .days = days_});
  for (const std::string& path : keys.kept) std::cout << "kept " << path << "\n";
  for (const std::string& path : keys.made) std::cout << "made " << path << "\n";
  std::cout
      << "\nThe coordinator needs coordinator.pem, coordinator-key.pem and token (and\n"
         "authority.pem with transport.mutual); node K needs authority.pem and token (and\n"
         "node-K.pem and node-K-key.pem with transport.mutual). Copy them by a way that you\n"
         "trust. authority-key.pem is for none of them: keep it off the coordinator, only who\n"
         "has it can let members in. The same command makes what is missing: certificates of\n"
         "more --nodes, or a certificate that was removed together with its key.\n"
      << std::flush;
  for (const std::string& line : keys.warnings) {
    std::cerr << "spes-sim: warning: " << line << std::endl;
  }
  return 0;
}

}  // namespace spes::app
