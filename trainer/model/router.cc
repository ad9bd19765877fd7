#include "trainer/model/router.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "trainer/model/autograd.h"
#include "trainer/model/vector_math.h"

namespace spes::trainer {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Softmax of z over n elements into p; returns logsumexp(z).
template <class T>
T SoftmaxRow(const T* __restrict z, std::int64_t n, T* __restrict p) {
  const T largest = Max(z, n);
  for (std::int64_t i = 0; i < n; ++i) p[i] = Exp(z[i] - largest);
  const T sum = Sum(p, n), share = T{1} / sum;
  for (std::int64_t i = 0; i < n; ++i) p[i] *= share;
  return largest + std::log(sum);
}

// Indices of the k largest of n probabilities times `preference`, largest first, ties to the lower
// index; `scratch` [n]. Without any that equals the largest, which only NaN can bring about: the
// first k.
template <class T>
void TopK(const T* p, const double* preference, std::int64_t n, std::int64_t k, T* scratch,
          std::int32_t* best) {
  std::copy(p, p + n, scratch);
  for (std::int64_t i = 0; preference != nullptr && i < n; ++i) {
    scratch[i] *= static_cast<T>(preference[i]);
  }
  for (std::int64_t rank = 0; rank < k; ++rank) {
    const T* found = std::find(scratch, scratch + n, Max(scratch, n));
    const std::int64_t e = found == scratch + n ? rank : found - scratch;
    best[rank] = static_cast<std::int32_t>(e);
    scratch[e] = -1;
  }
}

Dispatch GroupByExpert(const std::int32_t* chosen, std::int64_t slots, std::int64_t experts) {
  Dispatch dispatch{at::empty({slots}, at::kInt), at::zeros({experts + 1}, at::kLong)};
  std::int64_t* offsets = dispatch.offsets.data_ptr<std::int64_t>();
  for (std::int64_t s = 0; s < slots; ++s) ++offsets[chosen[s] + 1];
  std::partial_sum(offsets, offsets + experts + 1, offsets);
  std::vector<std::int64_t> next(offsets, offsets + experts);
  std::int32_t* order = dispatch.slots.data_ptr<std::int32_t>();
  for (std::int64_t s = 0; s < slots; ++s) {
    order[next[static_cast<std::size_t>(chosen[s])]++] = static_cast<std::int32_t>(s);
  }
  return dispatch;
}

struct Router : torch::autograd::Function<Router> {
  static variable_list forward(AutogradContext* context, const at::Tensor& logits,
                               const RouterOptions& options, Routing* routing) {
    const std::int64_t N = logits.size(0), E = logits.size(1), K = options.experts_per_token;
    at::Tensor probabilities = at::empty_like(logits), lse = at::empty({N}, logits.options());
    at::Tensor weights = at::empty({N, K}, logits.options());
    at::Tensor losses = at::empty({2}, logits.options());
    at::Tensor chosen = at::empty({N, K}, at::kInt), scratch = at::empty({E}, logits.options());
    std::int32_t* best = chosen.data_ptr<std::int32_t>();
    AT_DISPATCH_FLOATING_TYPES(logits.scalar_type(), "Route", [&] {
      const scalar_t* z = logits.const_data_ptr<scalar_t>();
      scalar_t *p = probabilities.data_ptr<scalar_t>(), *l = lse.data_ptr<scalar_t>(),
               *w = weights.data_ptr<scalar_t>(), *spare = scratch.data_ptr<scalar_t>();
      double z_sum = 0;
      std::vector<double> mass(static_cast<std::size_t>(E));
      for (std::int64_t n = 0; n < N; ++n) {
        l[n] = SoftmaxRow(z + n * E, E, p + n * E);
        z_sum += static_cast<double>(l[n]) * static_cast<double>(l[n]);
        routing->entropy_sum += static_cast<double>(l[n] - Dot(p + n * E, z + n * E, E));
        for (std::int64_t e = 0; e < E; ++e) {
          mass[static_cast<std::size_t>(e)] += static_cast<double>(p[n * E + e]);
        }
        TopK(p + n * E, options.preference, E, K, spare, best + n * K);
        scalar_t sum = 0;
        for (std::int64_t k = 0; k < K; ++k) sum += w[n * K + k] = p[n * E + best[n * K + k]];
        for (std::int64_t k = 0; options.renormalise && k < K; ++k) w[n * K + k] /= sum;
      }
      routing->dispatch = GroupByExpert(best, N * K, E);
      double balance = 0;
      for (std::int64_t e = 0; e < E; ++e) {
        balance +=
            static_cast<double>(routing->dispatch.Slots(e)) * mass[static_cast<std::size_t>(e)];
      }
      const double tokens = static_cast<double>(N);
      losses.data_ptr<scalar_t>()[0] =
          static_cast<scalar_t>(options.load_balance * static_cast<double>(E) * balance /
                                (tokens * static_cast<double>(K) * tokens));
      losses.data_ptr<scalar_t>()[1] = static_cast<scalar_t>(options.z * z_sum / tokens);
    });
    context->save_for_backward({probabilities, lse, weights, chosen, routing->dispatch.offsets});
    context->saved_data["renormalise"] = options.renormalise;
    context->saved_data["load_balance"] = options.load_balance;
    context->saved_data["z"] = options.z;
    return {weights, losses};
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &probabilities = saved[0], &lse = saved[1], &weights = saved[2];
    const std::int32_t* best = saved[3].const_data_ptr<std::int32_t>();
    const std::int64_t* offsets = saved[4].const_data_ptr<std::int64_t>();
    const bool renormalise = context->saved_data["renormalise"].toBool();
    const at::Tensor dweights = gradients[0].contiguous(), dlosses = gradients[1].contiguous();
    const std::int64_t N = probabilities.size(0), E = probabilities.size(1), K = weights.size(1);
    at::Tensor dlogits = at::empty_like(probabilities);
    at::Tensor scratch = at::empty({2, E}, probabilities.options());
    AT_DISPATCH_FLOATING_TYPES(probabilities.scalar_type(), "Route", [&] {
      const scalar_t *p = probabilities.const_data_ptr<scalar_t>(),
                     *l = lse.const_data_ptr<scalar_t>(), *w = weights.const_data_ptr<scalar_t>(),
                     *dw = dweights.const_data_ptr<scalar_t>(),
                     *dloss = dlosses.const_data_ptr<scalar_t>();
      scalar_t *dz = dlogits.data_ptr<scalar_t>(), *share = scratch.data_ptr<scalar_t>(),
               *dp = share + E;
      const double tokens = static_cast<double>(N);
      // d loss / d p[n, e] by the load-balance loss, the same for every token; the shares f have
      // no gradient.
      for (std::int64_t e = 0; e < E; ++e) {
        share[e] = static_cast<scalar_t>(
            static_cast<double>(dloss[0]) * context->saved_data["load_balance"].toDouble() *
            static_cast<double>(E) * static_cast<double>(offsets[e + 1] - offsets[e]) /
            (tokens * static_cast<double>(K) * tokens));
      }
      const scalar_t z_factor = static_cast<scalar_t>(2 * static_cast<double>(dloss[1]) *
                                                      context->saved_data["z"].toDouble() / tokens);
      for (std::int64_t n = 0; n < N; ++n, p += E, dz += E, w += K, dw += K, best += K) {
        std::copy(share, share + E, dp);
        scalar_t sum = 1, mean = 0;
        if (renormalise) {
          sum = 0;
          for (std::int64_t k = 0; k < K; ++k) sum += p[best[k]];
          mean = Dot(w, dw, K);
        }
        for (std::int64_t k = 0; k < K; ++k) dp[best[k]] += (dw[k] - mean) / sum;
        const scalar_t centre = Dot(p, dp, E) - z_factor * l[n];
        for (std::int64_t e = 0; e < E; ++e) dz[e] = p[e] * (dp[e] - centre);
      }
    });
    return {dlogits, at::Tensor(), at::Tensor()};
  }
};

}  // namespace

std::int64_t Dispatch::Slots(std::int64_t expert) const {
  const std::int64_t* p = offsets.const_data_ptr<std::int64_t>();
  return p[expert + 1] - p[expert];
}

Routing Route(const at::Tensor& logits, const RouterOptions& options) {
  Routing routing;
  const variable_list outputs = Router::apply(logits, options, &routing);
  routing.weights = outputs[0];
  routing.losses = outputs[1];
  return routing;
}

}  // namespace spes::trainer
