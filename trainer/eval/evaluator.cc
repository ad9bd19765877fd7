#include "trainer/eval/evaluator.h"

#include <algorithm>
#include <vector>

#include "trainer/model/autograd.h"
#include "trainer/model/block_tensor.h"
#include "trainer/model/model.h"
#include "trainer/model_node.h"

namespace spes::trainer {

EvalResult Evaluate(const ModelConfig& config, const World& world, std::span<const Batch> batches,
                    const std::atomic<bool>& stop, const std::string& device) {
  InitLibTorch();
  const c10::InferenceMode inference;
  std::int64_t longest = 1;
  for (const Batch& batch : batches) longest = std::max(longest, batch.context);
  const ModelPlace place{.device = at::Device(device)};
  const Model model(config, world.table, longest, place);
  std::vector<at::Tensor> parameters;
  for (BlockId id = 0; id < world.table->size(); ++id) {
    parameters.push_back(BlockTensor((*world.table)[id], world.table->dtype(),
                                     world.blocks[static_cast<std::size_t>(id)].data)
                             .to(place.device));
  }
  EvalResult result;
  double sum = 0;
  for (const Batch& batch : batches) {
    if (stop.load()) return {};
    const at::Tensor rows =
        at::from_blob(const_cast<std::int32_t*>(batch.tokens.data()),
                      {batch.sequences, batch.context + 1}, at::TensorOptions(at::kInt));
    const at::Tensor tokens = rows.narrow(1, 0, batch.context).reshape({-1}).contiguous();
    const at::Tensor targets = rows.narrow(1, 1, batch.context).reshape({-1}).contiguous();
    const ModelLosses losses = model.Losses(parameters, tokens, targets, batch.context);
    sum += losses.output[0].item<double>() * static_cast<double>(tokens.size(0));
    result.tokens += tokens.size(0);
  }
  if (result.tokens > 0) result.ce = sum / static_cast<double>(result.tokens);
  return result;
}

}  // namespace spes::trainer
