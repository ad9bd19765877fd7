// A node whose blocks change, and what it adopts beside values.
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "tests/trainer/small_model.h"

namespace spes::trainer {
namespace {

// What a node trains may change: newcomers start from the published value, those that stay are not
// touched, and those that leave keep their value.
TEST(ModelNode, TrainsOtherBlocksFromNowOn) {
  const SmallModel setup;
  const auto node = setup.Make(0);
  const BlockTable& table = *setup.world.table;
  node->TrainSteps(1, 2, kGo);
  const std::vector<BlockId> next = SharedAndExperts(table, 1, 1);
  const BlockId shared = next.front(), comes = *table.Expert(0, 1), leaves = *table.Expert(0, 0);
  const auto before = node->Read(std::vector{shared}, true);
  node->SetTrainable(next, false);
  EXPECT_EQ(node->trainable(), next);
  const auto after = node->Read(std::vector{shared}, true);
  EXPECT_EQ(BlockChecksum(table[shared], table.dtype(), *before[0].data),
            BlockChecksum(table[shared], table.dtype(), *after[0].data));
  EXPECT_EQ(after[0].moments->updates, 2);
  const auto fresh = node->Read(std::vector{comes}, true);
  EXPECT_EQ(BlockChecksum(table[comes], table.dtype(), *fresh[0].data),
            BlockChecksum(table[comes], table.dtype(),
                          *setup.world.blocks[static_cast<std::size_t>(comes)].data));
  EXPECT_EQ(fresh[0].moments->updates, 0);
  EXPECT_THROW(node->Read(std::vector{leaves}, false), std::logic_error);
  node->TrainSteps(3, 1, kGo);
  EXPECT_EQ(node->Read(std::vector{comes}, true)[0].moments->updates, 1);
}

TEST(ModelNode, KeepsMomentsOfBlocksThatComeBackWhereAskedTo) {
  const SmallModel setup;
  const BlockTable& table = *setup.world.table;
  const auto first = SharedAndExperts(table, 0, 1), second = SharedAndExperts(table, 1, 1);
  const BlockId expert = *table.Expert(1, 0);
  for (const bool keep : {true, false}) {
    const auto node = setup.Make(0);
    node->TrainSteps(1, 2, kGo);
    node->SetTrainable(second, keep);
    node->TrainSteps(3, 1, kGo);
    const std::string saved = node->Save().Text();
    node->SetTrainable(first, keep);
    EXPECT_EQ(node->Read(std::vector{expert}, true)[0].moments->updates, keep ? 2 : 0);
    const auto again = setup.Make(0);
    again->SetTrainable(second, keep);
    again->Load(saved);
    again->SetTrainable(first, keep);
    EXPECT_EQ(again->Read(std::vector{expert}, true)[0].moments->updates, keep ? 2 : 0)
        << "saved with the rest";
  }
}

TEST(ModelNode, AdoptsMomentsAndMixesValues) {
  const SmallModel setup;
  const auto giver = setup.Make(0), taker = setup.Make(0, 1, 10);
  giver->TrainSteps(1, 3, kGo);
  taker->TrainSteps(1, 2, kGo);
  const BlockId id = giver->trainable().front();
  const auto given = giver->Read(std::vector{id}, true), own = taker->Read(std::vector{id}, true);
  taker->Apply(given, 0.25);
  const auto mixed = taker->Read(std::vector{id}, true);
  EXPECT_EQ(mixed[0].moments->updates, 3);
  for (std::size_t i = 0; i < 20; ++i) {
    EXPECT_FLOAT_EQ(mixed[0].data->as<float>()[i],
                    0.25F * own[0].data->as<float>()[i] + 0.75F * given[0].data->as<float>()[i]);
    EXPECT_FLOAT_EQ(mixed[0].moments->first->as<float>()[i],
                    0.25F * own[0].moments->first->as<float>()[i] +
                        0.75F * given[0].moments->first->as<float>()[i]);
  }
  taker->Apply(given, 0);
  EXPECT_EQ(taker->Read(std::vector{id}, true)[0].moments->second->as<float>()[3],
            given[0].moments->second->as<float>()[3]);
}

}  // namespace
}  // namespace spes::trainer
