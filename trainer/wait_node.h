// A node that does not train, to time what is around the training.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "trainer/node.h"

namespace spes::trainer {

// Its values are those that were published, and it offers them as they are; of moments it has none,
// and offers zeros where they are wanted. A step counts `tokens` tokens and no loss (NaN), and
// lasts `step_s` of wall time (empty: none); `stop` ends the wait.
std::unique_ptr<Node> MakeWaitNode(const World& world, std::vector<BlockId> trainable,
                                   std::int64_t tokens,
                                   std::function<double(std::int64_t step)> step_s);

}  // namespace spes::trainer
