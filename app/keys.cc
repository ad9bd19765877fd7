#include "app/keys.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "app/output_paths.h"
#include "trainer/runtime/tcp/keys.h"

namespace spes::app {

KeysCommand::KeysCommand(CLI::App& app)
    : command_(app.add_subcommand(
          "keys",
          "Make the certificates and the token with which the nodes of a real run are let "
          "in")) {
  command_->add_option("FOLDER", folder_, "Where they go; transport.keys names it then")
      ->capture_default_str();
  command_
      ->add_option("--host", hosts_,
                   "A name or address by which nodes dial the coordinator; repeatable")
      ->type_name("NAME")
      ->allow_extra_args(false)
      ->required();
  command_
      ->add_option("--nodes", nodes_,
                   "Nodes that get a certificate of their own, for transport.mutual")
      ->check(CLI::Range(0, 100'000))
      ->capture_default_str();
  command_->add_option("--days", days_, "That the certificates are valid")
      ->check(CLI::Range(1, 36'500))
      ->capture_default_str();
}

bool KeysCommand::parsed() const { return command_->parsed(); }

int KeysCommand::Run() const {
  RequireFolderOf(folder_);
  const auto paths =
      trainer::MakeKeys({.folder = folder_, .hosts = hosts_, .nodes = nodes_, .days = days_});
  for (const std::string& path : paths) std::cout << path << "\n";
  std::cout << fmt::format(
      "\nThe coordinator needs coordinator.pem, coordinator-key.pem and token (and authority.pem\n"
      "with transport.mutual); node K needs authority.pem and token (and node-K.pem and\n"
      "node-K-key.pem with transport.mutual). Copy them by a way that you trust. The authority's "
      "key is\n"
      "not kept: a further node with transport.mutual, or another date, wants new keys for all.\n");
  return 0;
}

}  // namespace spes::app
