#include "trainer/model/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace spes::trainer {
namespace {

// The official settings; the counts are those of the released checkpoints.
const ModelConfig k1B{.vocabulary = 151665,
                      .layers = 12,
                      .width = 768,
                      .heads = 12,
                      .kv_heads = 12,
                      .experts = 16,
                      .experts_per_token = 2,
                      .expert_width = 2048};
const ModelConfig k2B{.vocabulary = 151665,
                      .layers = 16,
                      .width = 1024,
                      .heads = 16,
                      .kv_heads = 16,
                      .experts = 16,
                      .experts_per_token = 2,
                      .expert_width = 2048};
const ModelConfig k7B{.vocabulary = 151665,
                      .layers = 16,
                      .width = 2048,
                      .heads = 16,
                      .kv_heads = 16,
                      .experts = 32,
                      .experts_per_token = 4,
                      .expert_width = 2048};
const ModelConfig k9B{.vocabulary = 151936,
                      .layers = 28,
                      .width = 2048,
                      .heads = 16,
                      .kv_heads = 8,
                      .head_width = 128,
                      .experts = 8,
                      .experts_per_token = 2,
                      .expert_width = 6144,
                      .qk_norm = QkNorm::kHead,
                      .renormalise_top_k = true};

TEST(OfficialSizes, AreExact) {
  const auto b1 = MakeBlockTable(k1B);
  EXPECT_EQ(b1->TotalElements(), 1'167'423'744);
  EXPECT_EQ(b1->SharedElements(), 261'454'080);
  EXPECT_EQ(b1->ExpertElements(), 56'623'104);
  EXPECT_EQ(ActiveElements(k1B), 374'700'288);
  EXPECT_EQ(b1->SharedElements() + 4 * b1->ExpertElements(), 487'946'496);  // of one of 4 nodes

  const auto b2 = MakeBlockTable(k2B);
  EXPECT_EQ(b2->TotalElements(), 1'988'660'224);  // our own choice of sizes: about 2.0e9
  EXPECT_NEAR(static_cast<double>(b2->TotalElements()), 2.0e9, 0.02e9);

  const auto b7 = MakeBlockTable(k7B);
  EXPECT_EQ(b7->TotalElements(), 7'333'287'936);
  EXPECT_EQ(b7->SharedElements(), 890'836'992);
  EXPECT_EQ(b7->ExpertElements(), 201'326'592);
  EXPECT_EQ(ActiveElements(k7B), 1'696'143'360);
  EXPECT_EQ(b7->SharedElements() + 8 * b7->ExpertElements(), 2'501'449'728);

  const auto b9 = MakeBlockTable(k9B);
  EXPECT_EQ(b9->TotalElements(), 9'430'950'912);
  EXPECT_EQ(b9->SharedElements(), 975'234'048);
  EXPECT_EQ(b9->ExpertElements(), 1'056'964'608);
  EXPECT_EQ(ActiveElements(k9B), 3'089'163'264);
}

std::vector<std::string> PartNames(const ModelConfig& config) {
  std::vector<std::string> names;
  const auto table = MakeBlockTable(config);
  for (const BlockSpec& block : *table) {
    for (const BlockPart& part : block.parts) names.push_back(part.name);
  }
  return names;
}

TEST(MakeBlockTable, KeepsTheOrder) {
  EXPECT_THAT(PartNames({.layers = 1, .experts = 2}),
              ::testing::ElementsAre(
                  "embed", "layers.0.attn_norm", "layers.0.q", "layers.0.k", "layers.0.v",
                  "layers.0.q_norm", "layers.0.k_norm", "layers.0.o", "layers.0.ffn_norm",
                  "layers.0.router", "layers.0.experts.0.w1", "layers.0.experts.0.v1",
                  "layers.0.experts.0.w2", "layers.0.experts.1.w1", "layers.0.experts.1.v1",
                  "layers.0.experts.1.w2", "final_norm", "lm_head"));
  EXPECT_THAT(PartNames({.layers = 1, .experts = 0, .qk_norm = QkNorm::kNone}),
              ::testing::ElementsAre("embed", "layers.0.attn_norm", "layers.0.q", "layers.0.k",
                                     "layers.0.v", "layers.0.o", "layers.0.ffn_norm", "layers.0.w1",
                                     "layers.0.v1", "layers.0.w2", "final_norm", "lm_head"));
}

TEST(MakeBlockTable, ShapesFollowTheHeads) {
  const auto table = MakeBlockTable({.vocabulary = 50,
                                     .layers = 1,
                                     .width = 24,
                                     .heads = 4,
                                     .kv_heads = 2,
                                     .head_width = 10,
                                     .experts = 3,
                                     .experts_per_token = 1,
                                     .expert_width = 7,
                                     .qk_norm = QkNorm::kHead});
  const auto shape = [&](const char* name) {
    const auto at = table->Find(name).value();
    return (*table)[at.block].parts[static_cast<std::size_t>(at.part)].shape;
  };
  EXPECT_THAT(shape("layers.0.q"), ::testing::ElementsAre(40, 24));
  EXPECT_THAT(shape("layers.0.k"), ::testing::ElementsAre(20, 24));
  EXPECT_THAT(shape("layers.0.v"), ::testing::ElementsAre(20, 24));
  EXPECT_THAT(shape("layers.0.o"), ::testing::ElementsAre(24, 40));
  EXPECT_THAT(shape("layers.0.q_norm"), ::testing::ElementsAre(10));
  EXPECT_THAT(shape("layers.0.router"), ::testing::ElementsAre(3, 24));
  EXPECT_THAT(shape("layers.0.experts.2.w2"), ::testing::ElementsAre(7, 24));
  EXPECT_THAT(shape("lm_head"), ::testing::ElementsAre(50, 24));
}

TEST(TrainingFlops, CountMatricesAndScores) {
  const ModelConfig c{.vocabulary = 100,
                      .layers = 2,
                      .width = 8,
                      .heads = 2,
                      .kv_heads = 2,
                      .experts = 4,
                      .experts_per_token = 2,
                      .expert_width = 16};
  const double shared = 2 * (4 * 8 * 8 + 4 * 8) + 100 * 8;  // q, k, v, o, router; the output
  const double experts = 2 * 2 * 3 * 8 * 16;                // of one token
  const double scores = 12 * 2 * 8 * 32 / 2.0;
  EXPECT_DOUBLE_EQ(TrainingFlopsPerToken(c, 32), 6 * (shared + experts) + scores);
  EXPECT_DOUBLE_EQ(TrainingFlopsPerToken(c, 32, 0.25), 6 * shared + 4.5 * experts + scores);
}

TEST(Validate, SaysWhatWouldBeRight) {
  const auto message = [](const ModelConfig& config) -> std::string {
    try {
      Validate(config);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message({}), "");
  EXPECT_EQ(message({.heads = 4, .kv_heads = 3}),
            "model: kv_heads is 3; it must divide heads, which is 4");
  EXPECT_EQ(message({.width = 130, .heads = 4}),
            "model: width 130 is not a multiple of heads 4; choose such a width or give "
            "head_width");
  EXPECT_EQ(message({.width = 12, .heads = 4}),
            "model: the width of a head is 3; rotary embeddings turn pairs, so it must be even");
  EXPECT_EQ(message({.experts = 4, .experts_per_token = 5}),
            "model: experts_per_token is 5; from 1 to experts, which is 4");
  EXPECT_EQ(message({.experts = 0, .experts_per_token = 0}), "");
  EXPECT_NE(message({.vocabulary = 1}), "");
  EXPECT_NE(message({.layers = 0}), "");
  EXPECT_NE(message({.expert_width = 0}), "");
  EXPECT_NE(message({.rope_theta = -1}), "");
  EXPECT_NE(message({.norm_eps = 0}), "");
  EXPECT_NE(message({.init_std = 0}), "");
  EXPECT_NE(message({.z_loss = -1}), "");
}

}  // namespace
}  // namespace spes::trainer
