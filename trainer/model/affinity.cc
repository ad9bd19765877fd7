#include "trainer/model/affinity.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "trainer/model/autograd.h"

namespace spes::trainer {

std::vector<double> RouterAffinity(const ModelConfig& config, const AffinityInputs& inputs,
                                   const std::vector<std::int64_t>& own, const Batch& batch) {
  std::vector<double> affinity(static_cast<std::size_t>(batch.sequences), 0);
  if (own.empty()) return affinity;
  const at::NoGradGuard no_gradients;
  at::Tensor tokens = at::empty({batch.sequences * batch.context}, at::kLong);
  std::int64_t* token = tokens.data_ptr<std::int64_t>();
  for (std::int64_t s = 0; s < batch.sequences; ++s) {
    const std::int32_t* row = batch.tokens.data() + s * (batch.context + 1);
    token = std::copy(row, row + batch.context, token);
  }
  const at::Device device = inputs.embed.device();
  const at::Tensor x = inputs.embed.index_select(0, tokens.to(device));
  const at::Tensor h =
      x * (x.square().mean(1, true) + config.norm_eps).rsqrt() * inputs.norm;  // [S·T, D]
  const at::Tensor p = at::softmax(at::mm(h, inputs.router.t()), 1);           // [S·T, E]
  const at::Tensor chosen = at::from_blob(const_cast<std::int64_t*>(own.data()),
                                          {static_cast<std::int64_t>(own.size())}, at::kLong);
  const at::Tensor mean = p.index_select(1, chosen.to(device))
                              .sum(1)
                              .view({batch.sequences, batch.context})
                              .mean(1)
                              .to(at::kDouble)
                              .cpu()
                              .contiguous();
  std::copy_n(mean.const_data_ptr<double>(), affinity.size(), affinity.begin());
  return affinity;
}

void KeepNearest(const std::vector<double>& affinity, std::int64_t sequences, Batch& batch) {
  std::vector<std::size_t> order(affinity.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return affinity[a] > affinity[b]; });
  order.resize(static_cast<std::size_t>(std::min(sequences, batch.sequences)));
  std::sort(order.begin(), order.end());
  const auto width = static_cast<std::size_t>(batch.context + 1);
  std::vector<std::int32_t> kept;
  for (const std::size_t row : order) {
    const auto first = batch.tokens.begin() + static_cast<std::ptrdiff_t>(row * width);
    kept.insert(kept.end(), first, first + static_cast<std::ptrdiff_t>(width));
  }
  batch.tokens = std::move(kept);
  batch.sequences = static_cast<std::int64_t>(order.size());
}

}  // namespace spes::trainer
