// Merging against the reference, with few experts and with ties.
#include "trainer/sync/merge.h"

#include "tests/golden/golden_file.h"

namespace spes::trainer {
namespace {

using golden::GoldenFile;

// The experts alone: the reference's groups hold nothing else.
std::shared_ptr<const BlockTable> ExpertsOnly(const ModelConfig& model, int experts) {
  std::vector<BlockSpec> blocks;
  for (int l = 0; l < model.layers; ++l) {
    for (int e = 0; e < experts; ++e) {
      const std::string name =
          "layers." + std::to_string(l) + ".experts." + std::to_string(e) + ".";
      const std::vector<std::int64_t> shape = {model.expert_width, model.width};
      blocks.push_back(
          MakeBlock(DType::kFloat64, BlockKind::kExpert, l, e,
                    {{name + "w1", shape}, {name + "v1", shape}, {name + "w2", shape}}));
    }
  }
  return std::make_shared<BlockTable>(DType::kFloat64, std::move(blocks));
}

class GoldenMerge : public ::testing::TestWithParam<int> {};

TEST_P(GoldenMerge, ExpertsAfterOneMerge) {
  const GoldenFile file;
  const std::string group = "merge/E" + std::to_string(GetParam());
  const auto table = ExpertsOnly(file.Model("forward/olmoe"), GetParam());
  const World before = file.ReadWorld(group + "/before", table);
  const MergeConfig config{.donors = static_cast<int>(file.Integer(group, "topk"))};
  const World merged = MergeExperts(before, file.Number(group, "alpha"), config, 1);
  golden::ExpectWorldsNear(merged, file.ReadWorld(group + "/after", table), 1e-12);
}

class GoldenTies : public ::testing::TestWithParam<int> {};

TEST_P(GoldenTies, EqualExpertsHaveBitEqualSimilarities) {
  const int experts = GetParam();
  const GoldenFile file;
  const auto table = ExpertsOnly(file.Model("forward/olmoe"), experts);
  const World before = file.ReadWorld("merge/E" + std::to_string(experts) + "/before", table);
  const std::vector<double> s = ExpertSimilarity(before, 0, MergeSimilarity::kW1);
  for (int i = 2; i < experts; ++i) {
    const std::size_t row = static_cast<std::size_t>(i * experts);
    EXPECT_EQ(s[row], s[row + 1]) << "expert " << i;
    // The tie goes to the lower index.
    const std::vector<int> order = NearestExperts(s, experts, experts)[static_cast<std::size_t>(i)];
    EXPECT_EQ(std::find(order.begin(), order.end(), 0) + 1,
              std::find(order.begin(), order.end(), 1));
  }
}

INSTANTIATE_TEST_SUITE_P(Experts, GoldenMerge, ::testing::Values(6, 4, 2, 1));
INSTANTIATE_TEST_SUITE_P(Experts, GoldenTies, ::testing::Values(6, 4));

}  // namespace
}  // namespace spes::trainer
