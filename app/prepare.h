// What every process of a run makes from the scenario before anything else.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "scenarios/scenario.h"
#include "trainer/data/dataset.h"
#include "trainer/protocol/coordinator.h"
#include "trainer/sync/world.h"

namespace spes::app {

// The world that the run starts from. Throws std::invalid_argument on a file that is no such world.
trainer::World FirstWorld(const scenarios::Scenario& scenario);

// The text that nodes train on; resolves the corpora. Throws as OpenDataset does.
std::shared_ptr<const trainer::Dataset> OpenData(scenarios::Scenario& scenario);

// What a saved world says about itself.
std::map<std::string, std::string> WorldMetadata(const scenarios::Scenario& scenario,
                                                 const trainer::PublishedRound& published);

}  // namespace spes::app
