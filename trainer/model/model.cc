#include "trainer/model/model.h"

#include <string>
#include <utility>

#include "trainer/model/attention.h"
#include "trainer/model/autograd.h"
#include "trainer/model/block_tensor.h"
#include "trainer/model/cross_entropy.h"
#include "trainer/model/embedding.h"
#include "trainer/model/linear.h"
#include "trainer/model/query_key.h"
#include "trainer/model/rms_norm.h"
#include "trainer/model/router.h"

namespace spes::trainer {

namespace {

void Count(const Routing& routing, std::size_t layer, RoutingCounts& counts) {
  std::vector<std::int64_t>& routed = counts.routed[layer];
  for (std::size_t e = 0; e < routed.size(); ++e) {
    routed[e] += routing.dispatch.Slots(static_cast<std::int64_t>(e));
  }
  counts.entropy_sum[layer] += routing.entropy_sum;
}

}  // namespace

Model::Model(const ModelConfig& config, std::shared_ptr<const BlockTable> table,
             std::int64_t context)
    : config_(config),
      rotary_(
          RotaryTable(context, config.HeadWidth(), config.rope_theta, ScalarTypeOf(config.dtype))) {
  const auto id = [&](const std::string& name) { return table->Find(name).value().block; };
  embed_ = id("embed");
  final_norm_ = id("final_norm");
  lm_head_ = id("lm_head");
  for (int l = 0; l < config.layers; ++l) {
    const std::string at = "layers." + std::to_string(l) + ".";
    Layer layer;
    layer.attn_norm = id(at + "attn_norm");
    layer.q = id(at + "q");
    layer.k = id(at + "k");
    layer.v = id(at + "v");
    layer.o = id(at + "o");
    layer.ffn_norm = id(at + "ffn_norm");
    if (config.qk_norm != QkNorm::kNone) {
      layer.q_norm = id(at + "q_norm");
      layer.k_norm = id(at + "k_norm");
    }
    if (config.experts == 0) {
      layer.w1 = id(at + "w1");
      layer.v1 = id(at + "v1");
      layer.w2 = id(at + "w2");
    } else {
      layer.router = id(at + "router");
    }
    for (int e = 0; e < config.experts; ++e) {
      layer.experts.push_back(table->Expert(l, e).value());
      const std::vector<BlockPart>& parts = (*table)[layer.experts.back()].parts;
      layer.layout = {config.width, config.expert_width, parts[0].offset, parts[1].offset,
                      parts[2].offset};
    }
    layers_.push_back(std::move(layer));
  }
}

at::Tensor Model::Attend(const Layer& layer, std::span<const at::Tensor> parameters,
                         const at::Tensor& h, const at::Tensor& rotary) const {
  const auto p = [&](BlockId id) { return parameters[static_cast<std::size_t>(id)]; };
  const auto norm = [&](BlockId id) { return id < 0 ? at::Tensor() : p(id); };
  const std::vector<at::Tensor> qkv = Project(h, {p(layer.q), p(layer.k), p(layer.v)});
  const at::Tensor q =
      NormaliseAndRotate(qkv[0], norm(layer.q_norm), config_.qk_norm, config_.norm_eps, rotary);
  const at::Tensor k =
      NormaliseAndRotate(qkv[1], norm(layer.k_norm), config_.qk_norm, config_.norm_eps, rotary);
  const at::Tensor mixed = CausalAttention(q, k, qkv[2],
                                           {.context = rotary.size(0),
                                            .heads = config_.heads,
                                            .kv_heads = config_.kv_heads,
                                            .head_width = config_.HeadWidth()});
  return Project(mixed, {p(layer.o)})[0];
}

at::Tensor Model::FeedForward(std::size_t l, std::span<const at::Tensor> parameters,
                              const at::Tensor& h, ModelLosses& losses, RoutingCounts* counts,
                              const double* preference, ModelTrace* trace) const {
  const auto p = [&](BlockId id) { return parameters[static_cast<std::size_t>(id)]; };
  const Layer& layer = layers_[l];
  if (layer.experts.empty()) {
    const std::vector<at::Tensor> up = Project(h, {p(layer.w1), p(layer.v1)});
    return at::mm(at::silu(up[0]) * up[1], p(layer.w2));
  }
  const at::Tensor logits = Project(h, {p(layer.router)})[0];
  const Routing routing = Route(logits, {.experts_per_token = config_.experts_per_token,
                                         .renormalise = config_.renormalise_top_k,
                                         .load_balance = config_.load_balance_loss / config_.layers,
                                         .z = config_.router_z_loss,
                                         .preference = preference});
  losses.router = losses.router.defined() ? losses.router + routing.losses : routing.losses;
  if (counts != nullptr) Count(routing, l, *counts);
  if (trace != nullptr) trace->router_logits.push_back(logits.detach());
  std::vector<at::Tensor> experts;
  experts.reserve(layer.experts.size());
  for (const BlockId id : layer.experts) experts.push_back(p(id));
  return MixExperts(h, routing.weights, routing.dispatch, experts, layer.layout);
}

ModelLosses Model::Losses(std::span<const at::Tensor> parameters, const at::Tensor& tokens,
                          const at::Tensor& targets, std::int64_t context, RoutingCounts* counts,
                          const double* preference, ModelTrace* trace) const {
  const auto p = [&](BlockId id) { return parameters[static_cast<std::size_t>(id)]; };
  const at::Tensor rotary = rotary_.narrow(0, 0, context);
  ModelLosses losses;
  at::Tensor x = Embed(tokens, p(embed_));
  at::Tensor h = RmsNorm(x, p(layers_[0].attn_norm), config_.norm_eps);
  const auto add = [&](const at::Tensor& y, BlockId next_norm) {
    const SumAndNorm next = AddRmsNorm(x, y, p(next_norm), config_.norm_eps);
    x = next.sum;
    h = next.norm;
  };
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    add(Attend(layers_[l], parameters, h, rotary), layers_[l].ffn_norm);
    const double* of_layer = preference != nullptr
                                 ? preference + l * static_cast<std::size_t>(config_.experts)
                                 : nullptr;
    add(FeedForward(l, parameters, h, losses, counts, of_layer, trace),
        l + 1 < layers_.size() ? layers_[l + 1].attn_norm : final_norm_);
  }
  if (counts != nullptr) counts->tokens += tokens.size(0);
  const at::Tensor logits = Project(h, {p(lm_head_)})[0];
  if (trace != nullptr) trace->logits = logits.detach();
  losses.output = CrossEntropy(logits, targets, config_.z_loss);
  losses.total = losses.output.sum();
  if (losses.router.defined()) losses.total = losses.total + losses.router.sum();
  return losses;
}

}  // namespace spes::trainer
