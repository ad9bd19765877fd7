#include "trainer/model/aten/router.h"

#include <tuple>

#include "trainer/model/autograd.h"

namespace spes::trainer::aten {

namespace {

// The K best experts of each token [N, K], best first; a stable order breaks ties by index.
at::Tensor Best(const at::Tensor& probabilities, const RouterOptions& options) {
  at::Tensor p = probabilities.detach();
  if (options.preference != nullptr) {
    const auto experts = static_cast<std::size_t>(p.size(1));
    p = p *
        at::tensor(at::ArrayRef<double>(options.preference, experts), at::kDouble).to(p.options());
  }
  return std::get<1>(at::sort(p, /*stable=*/true, -1, /*descending=*/true))
      .narrow(1, 0, options.experts_per_token)
      .contiguous();
}

}  // namespace

Routing Route(const at::Tensor& logits, const RouterOptions& options) {
  const std::int64_t E = logits.size(1);
  const double N = static_cast<double>(logits.size(0));
  const double K = static_cast<double>(options.experts_per_token);
  const at::Tensor lse = logits.logsumexp(-1), p = logits.softmax(-1);
  const at::Tensor chosen = Best(p, options);
  Routing routing;
  routing.weights = p.gather(1, chosen);
  if (options.renormalise) routing.weights = routing.weights / routing.weights.sum(-1, true);

  const auto [experts, slots] = at::sort(chosen.flatten(), /*stable=*/true, 0, false);
  const at::Tensor offsets = at::searchsorted(experts, at::arange(E + 1, experts.options()));
  const at::Tensor entropy = (lse.detach() - (p.detach() * logits.detach()).sum(-1)).sum();
  const at::Tensor host = at::cat({offsets.to(at::kDouble), entropy.to(at::kDouble).view(1)}).cpu();
  routing.dispatch.slots = slots.to(at::kInt);
  routing.dispatch.offsets = host.narrow(0, 0, E + 1).to(at::kLong);
  routing.entropy_sum = host[E + 1].item<double>();

  const at::Tensor share = offsets.diff().to(p.scalar_type());
  const double scale = options.load_balance * static_cast<double>(E) / (N * K * N);
  routing.losses = at::stack({(share * p.sum(0)).sum() * scale, lse.square().mean() * options.z});
  return routing;
}

}  // namespace spes::trainer::aten
