#include "trainer/model/config.h"

#include <fmt/format.h>

#include <cmath>
#include <stdexcept>
#include <utility>
#include <vector>

namespace spes::trainer {

namespace {

template <class... Args>
void Require(bool holds, fmt::format_string<Args...> message, Args&&... args) {
  if (!holds)
    throw std::invalid_argument("model: " + fmt::format(message, std::forward<Args>(args)...));
}

// Elements of the matrices that every token is multiplied with: attention, router or dense layer,
// and the output; the embedding is only looked up.
std::int64_t SharedMatrixElements(const ModelConfig& c) {
  const std::int64_t query = c.heads * c.HeadWidth(), kv = c.kv_heads * c.HeadWidth();
  const std::int64_t ffn = c.experts > 0 ? c.experts * c.width : 3 * c.width * c.expert_width;
  return c.layers * (c.width * (2 * query + 2 * kv) + ffn) + c.vocabulary * c.width;
}

std::int64_t ActiveExpertElements(const ModelConfig& c) {
  return c.experts > 0 ? std::int64_t{3} * c.layers * c.experts_per_token * c.width * c.expert_width
                       : 0;
}

}  // namespace

void Validate(const ModelConfig& c) {
  Require(c.vocabulary >= 2, "vocabulary is {}; at least 2", c.vocabulary);
  Require(c.layers >= 1, "layers is {}; at least 1", c.layers);
  Require(c.width >= 1, "width is {}; at least 1", c.width);
  Require(c.heads >= 1, "heads is {}; at least 1", c.heads);
  Require(c.kv_heads >= 1 && c.heads % c.kv_heads == 0,
          "kv_heads is {}; it must divide heads, which is {}", c.kv_heads, c.heads);
  Require(c.head_width >= 0, "head_width is {}; positive, or 0 for width / heads", c.head_width);
  Require(c.head_width > 0 || c.width % c.heads == 0,
          "width {} is not a multiple of heads {}; choose such a width or give head_width", c.width,
          c.heads);
  Require(c.HeadWidth() % 2 == 0,
          "the width of a head is {}; rotary embeddings turn pairs, so it must be even",
          c.HeadWidth());
  Require(c.experts >= 0, "experts is {}; positive, or 0 for dense layers", c.experts);
  if (c.experts > 0) {
    Require(c.experts_per_token >= 1 && c.experts_per_token <= c.experts,
            "experts_per_token is {}; from 1 to experts, which is {}", c.experts_per_token,
            c.experts);
  }
  Require(c.expert_width >= 1, "expert_width is {}; at least 1", c.expert_width);
  Require(c.rope_theta > 0 && std::isfinite(c.rope_theta), "rope_theta is {}; it must be positive",
          c.rope_theta);
  Require(c.norm_eps > 0 && std::isfinite(c.norm_eps), "norm_eps is {}; it must be positive",
          c.norm_eps);
  Require(c.init_std > 0 && std::isfinite(c.init_std), "init_std is {}; it must be positive",
          c.init_std);
  for (const auto& [name, value] : {std::pair{"z_loss", c.z_loss},
                                    {"load_balance_loss", c.load_balance_loss},
                                    {"router_z_loss", c.router_z_loss}}) {
    Require(value >= 0 && std::isfinite(value), "{} is {}; it must not be negative", name, value);
  }
}

std::shared_ptr<const BlockTable> MakeBlockTable(const ModelConfig& c) {
  Validate(c);
  const std::int64_t D = c.width, F = c.expert_width, V = c.vocabulary;
  const std::int64_t query = c.heads * c.HeadWidth(), kv = c.kv_heads * c.HeadWidth();
  std::vector<BlockSpec> blocks;
  const auto shared = [&](int layer, std::string name, std::vector<std::int64_t> shape) {
    blocks.push_back(
        MakeBlock(c.dtype, BlockKind::kShared, layer, -1, {{std::move(name), std::move(shape)}}));
  };
  shared(-1, "embed", {V, D});
  for (int l = 0; l < c.layers; ++l) {
    const std::string at = fmt::format("layers.{}.", l);
    shared(l, at + "attn_norm", {D});
    shared(l, at + "q", {query, D});
    shared(l, at + "k", {kv, D});
    shared(l, at + "v", {kv, D});
    if (c.qk_norm != QkNorm::kNone) {
      shared(l, at + "q_norm", {c.qk_norm == QkNorm::kFull ? query : c.HeadWidth()});
      shared(l, at + "k_norm", {c.qk_norm == QkNorm::kFull ? kv : c.HeadWidth()});
    }
    shared(l, at + "o", {D, query});
    shared(l, at + "ffn_norm", {D});
    if (c.experts > 0) {
      shared(l, at + "router", {c.experts, D});
    } else {
      for (const char* matrix : {"w1", "v1", "w2"}) shared(l, at + matrix, {F, D});
    }
    for (int e = 0; e < c.experts; ++e) {
      const std::string expert = fmt::format("{}experts.{}.", at, e);
      blocks.push_back(
          MakeBlock(c.dtype, BlockKind::kExpert, l, e,
                    {{expert + "w1", {F, D}}, {expert + "v1", {F, D}}, {expert + "w2", {F, D}}}));
    }
  }
  shared(-1, "final_norm", {D});
  shared(-1, "lm_head", {V, D});
  return std::make_shared<const BlockTable>(c.dtype, std::move(blocks));
}

std::int64_t ActiveElements(const ModelConfig& c) {
  return MakeBlockTable(c)->SharedElements() + ActiveExpertElements(c);
}

std::int64_t ActivationElements(const ModelConfig& c, std::int64_t tokens) {
  const std::int64_t query = c.heads * c.HeadWidth(), kv = c.kv_heads * c.HeadWidth();
  const std::int64_t inner = c.expert_width * (c.experts > 0 ? c.experts_per_token : 1);
  const std::int64_t layer = 4 * c.width + 3 * query + 3 * kv + c.experts + 2 * inner;
  return tokens * (c.layers * layer + 2 * c.vocabulary + 8 * c.width);
}

double TrainingFlopsPerToken(const ModelConfig& c, std::int64_t context, double trainable_experts) {
  const double attention = 12.0 * c.layers * static_cast<double>(c.heads * c.HeadWidth()) *
                           static_cast<double>(context) / 2;
  return 6.0 * static_cast<double>(SharedMatrixElements(c)) +
         (4 + 2 * trainable_experts) * static_cast<double>(ActiveExpertElements(c)) + attention;
}

}  // namespace spes::trainer
