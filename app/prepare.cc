#include "app/prepare.h"

#include <utility>

#include "scenarios/catalogue.h"
#include "trainer/checkpoint/world_file.h"
#include "trainer/model/initial_world.h"

namespace spes::app {

trainer::World FirstWorld(const scenarios::Scenario& scenario) {
  auto table = trainer::MakeBlockTable(scenario.model);
  if (!scenario.training.start_from.empty()) {
    return trainer::LoadWorld(std::move(table), scenario.training.start_from);
  }
  return trainer::MakeInitialWorld(scenario.model, std::move(table), scenario.seed);
}

std::shared_ptr<const trainer::Dataset> OpenData(scenarios::Scenario& scenario) {
  scenarios::ResolveCorpora(scenario.data);
  return trainer::OpenDataset(scenario.data, scenario.model.vocabulary, scenario.training.context);
}

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

}  // namespace spes::app
