#include "trainer/model/model.h"

#include <string>
#include <utility>

#include "trainer/model/autograd.h"
#include "trainer/model/block_tensor.h"

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
             std::int64_t context, const ModelPlace& place)
    : config_(config),
      use_(place.device.is_cpu() && place.compute == ComputeType::kModel && !place.library_operators
               ? HostOperators()
               : AtenOperators()),
      product_type_(place.compute == ComputeType::kBFloat16 ? at::kBFloat16
                                                            : ScalarTypeOf(config.dtype)),
      in_products_(static_cast<std::size_t>(table->size()), true),
      rotary_(
          RotaryTable(context, config.HeadWidth(), config.rope_theta, ScalarTypeOf(config.dtype))
              .to(place.device)) {
  const auto id = [&](const std::string& name) { return table->Find(name).value().block; };
  const auto not_in_products = [&](const std::string& name) {
    const BlockId block = id(name);
    in_products_[static_cast<std::size_t>(block)] = false;
    return block;
  };
  embed_ = not_in_products("embed");
  final_norm_ = not_in_products("final_norm");
  lm_head_ = id("lm_head");
  for (int l = 0; l < config.layers; ++l) {
    const std::string at = "layers." + std::to_string(l) + ".";
    Layer layer;
    layer.attn_norm = not_in_products(at + "attn_norm");
    layer.q = id(at + "q");
    layer.k = id(at + "k");
    layer.v = id(at + "v");
    layer.o = id(at + "o");
    layer.ffn_norm = not_in_products(at + "ffn_norm");
    if (config.qk_norm != QkNorm::kNone) {
      layer.q_norm = not_in_products(at + "q_norm");
      layer.k_norm = not_in_products(at + "k_norm");
    }
    if (config.experts == 0) {
      layer.w1 = id(at + "w1");
      layer.v1 = id(at + "v1");
      layer.w2 = id(at + "w2");
    } else {
      layer.router = not_in_products(at + "router");
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

at::ScalarType Model::type(BlockId id) const {
  return in_products_[static_cast<std::size_t>(id)] ? product_type_ : ScalarTypeOf(config_.dtype);
}

at::Tensor Model::Matrix(std::span<const at::Tensor> parameters, BlockId id) const {
  return parameters[static_cast<std::size_t>(id)].to(product_type_);
}

at::Tensor Model::Attend(const Layer& layer, std::span<const at::Tensor> parameters,
                         const at::Tensor& h, const at::Tensor& rotary) const {
  const auto p = [&](BlockId id) { return parameters[static_cast<std::size_t>(id)]; };
  const auto matrix = [&](BlockId id) { return Matrix(parameters, id); };
  const auto turned = [&](const at::Tensor& x, BlockId norm) {
    return use_.normalise_and_rotate(x, norm < 0 ? at::Tensor() : p(norm), config_.qk_norm,
                                     config_.norm_eps, rotary);
  };
  const std::vector<at::Tensor> qkv =
      use_.project(h, {matrix(layer.q), matrix(layer.k), matrix(layer.v)});
  const at::Tensor q = turned(qkv[0], layer.q_norm), k = turned(qkv[1], layer.k_norm);
  const at::Tensor mixed = use_.causal_attention(q, k, qkv[2],
                                                 {.context = rotary.size(0),
                                                  .heads = config_.heads,
                                                  .kv_heads = config_.kv_heads,
                                                  .head_width = config_.HeadWidth()});
  return use_.project(mixed, {matrix(layer.o)})[0];
}

at::Tensor Model::FeedForward(std::size_t l, std::span<const at::Tensor> parameters,
                              const at::Tensor& h, ModelLosses& losses, RoutingCounts* counts,
                              const double* preference, ModelTrace* trace) const {
  const auto matrix = [&](BlockId id) { return Matrix(parameters, id); };
  const Layer& layer = layers_[l];
  if (layer.experts.empty()) {
    const std::vector<at::Tensor> up = use_.project(h, {matrix(layer.w1), matrix(layer.v1)});
    return at::mm(at::silu(up[0]) * up[1], matrix(layer.w2));
  }
  const at::Tensor& router = parameters[static_cast<std::size_t>(layer.router)];
  const at::Tensor logits = use_.project(h.to(router.scalar_type()), {router})[0];
  const Routing routing =
      use_.route(logits, {.experts_per_token = config_.experts_per_token,
                          .renormalise = config_.renormalise_top_k,
                          .load_balance = config_.load_balance_loss / config_.layers,
                          .z = config_.router_z_loss,
                          .preference = preference});
  losses.router = losses.router.defined() ? losses.router + routing.losses : routing.losses;
  if (counts != nullptr) Count(routing, l, *counts);
  if (trace != nullptr) trace->router_logits.push_back(logits.detach());
  std::vector<at::Tensor> experts;
  experts.reserve(layer.experts.size());
  for (const BlockId id : layer.experts) experts.push_back(matrix(id));
  return use_.mix_experts(h, routing.weights, routing.dispatch, experts, layer.layout);
}

ModelLosses Model::Losses(std::span<const at::Tensor> parameters, const at::Tensor& tokens,
                          const at::Tensor& targets, std::int64_t context, RoutingCounts* counts,
                          const double* preference, ModelTrace* trace) const {
  const auto p = [&](BlockId id) { return parameters[static_cast<std::size_t>(id)]; };
  const at::Tensor rotary = rotary_.narrow(0, 0, context);
  ModelLosses losses;
  at::Tensor x = use_.embed(tokens, p(embed_)).to(product_type_);
  at::Tensor h = use_.rms_norm(x, p(layers_[0].attn_norm), config_.norm_eps);
  const auto add = [&](const at::Tensor& y, BlockId next_norm) {
    const SumAndNorm next = use_.add_rms_norm(x, y, p(next_norm), config_.norm_eps);
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
  const at::Tensor logits = use_.project(h, {Matrix(parameters, lm_head_)})[0];
  if (trace != nullptr) trace->logits = logits.detach();
  losses.output = use_.cross_entropy(logits, targets, config_.z_loss);
  losses.total = losses.output.sum();
  if (losses.router.defined()) losses.total = losses.total + losses.router.sum();
  return losses;
}

}  // namespace spes::trainer
