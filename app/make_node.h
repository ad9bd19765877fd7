// The node of a scenario.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "scenarios/scenario.h"
#include "trainer/data/dataset.h"
#include "trainer/model_node.h"
#include "trainer/node.h"
#include "trainer/sync/allocation.h"

namespace spes::app {

// Node `node`, starting from `world`, on its share of the scenario's devices. `steps_done`, where
// given, counts the finished steps of all nodes that share it; `published`, where given, keeps
// published values on devices for all nodes that share it. `wait_s`: of a node that only waits, the
// wall time of a step; empty: none.
std::unique_ptr<trainer::Node> MakeNode(const scenarios::Scenario& scenario,
                                        const trainer::World& world,
                                        const trainer::Dataset& dataset,
                                        const trainer::Allocation& allocation, int node,
                                        std::shared_ptr<std::atomic<std::int64_t>> steps_done,
                                        std::shared_ptr<trainer::PublishedTensors> published,
                                        std::function<double(std::int64_t step)> wait_s = {});

}  // namespace spes::app
