#include "trainer/checkpoint/world_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/trainer/data/temporary_folder.h"
#include "trainer/checkpoint/safetensors.h"

namespace spes::trainer {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Sizes that leave padding between the parts of a block.
std::shared_ptr<const BlockTable> Table(DType dtype, std::int64_t width = 3, bool expert = true) {
  std::vector<BlockSpec> blocks;
  blocks.push_back(MakeBlock(dtype, BlockKind::kShared, -1, -1, {{"embed", {5, width}}}));
  if (expert) {
    blocks.push_back(MakeBlock(dtype, BlockKind::kExpert, 0, 0,
                               {{"layers.0.experts.0.w1", {7, width}},
                                {"layers.0.experts.0.v1", {7, width}},
                                {"layers.0.experts.0.w2", {7, width}}}));
  }
  blocks.push_back(MakeBlock(dtype, BlockKind::kShared, -1, -1, {{"final_norm", {width}}}));
  return std::make_shared<const BlockTable>(dtype, std::move(blocks));
}

// Value i of a block is f(i); padding stays zero.
template <class T>
World Fill(const std::shared_ptr<const BlockTable>& table) {
  World world{table, {}};
  int n = 0;
  for (BlockId id = 0; id < table->size(); ++id) {
    Buffer data = table->Allocate(id);
    for (const BlockPart& part : (*table)[id].parts) {
      for (std::int64_t i = 0; i < part.elements; ++i) {
        data.as<T>()[static_cast<std::size_t>(part.offset + i)] = T{1} / static_cast<T>(++n);
      }
    }
    world.blocks.push_back({4, std::make_shared<const Buffer>(std::move(data))});
  }
  return world;
}

TEST(WorldFile, RoundTripIsExact) {
  const TemporaryFolder folder;
  const auto check = [&](const World& world) {
    SaveWorld(world, {{"round", "4"}, {"note", "ä \"quoted\"\n"}}, folder.Path("w"));
    const World read = LoadWorld(Table(world.table->dtype()), folder.Path("w"));
    ASSERT_EQ(read.blocks.size(), world.blocks.size());
    for (std::size_t b = 0; b < read.blocks.size(); ++b) {
      EXPECT_EQ(read.blocks[b].version, 0);
      ASSERT_EQ(read.blocks[b].data->bytes(), world.blocks[b].data->bytes());
      EXPECT_EQ(std::memcmp(read.blocks[b].data->data(), world.blocks[b].data->data(),
                            static_cast<std::size_t>(read.blocks[b].data->bytes())),
                0);
    }
    const auto metadata = ReadWorldMetadata(folder.Path("w"));
    EXPECT_EQ(metadata.at("round"), "4");
    EXPECT_EQ(metadata.at("note"), "ä \"quoted\"\n");
    EXPECT_EQ(metadata.at("world_hash"), WorldHash(world));
  };
  check(Fill<float>(Table(DType::kFloat32)));
  check(Fill<double>(Table(DType::kFloat64)));
}

TEST(WorldFile, TensorsStandInTableOrderUnderTheirPartsNames) {
  const TemporaryFolder folder;
  SaveWorld(Fill<float>(Table(DType::kFloat32)), {}, folder.Path("w"));
  const SafetensorsFile file(folder.Path("w"));
  std::vector<std::string> names;
  for (const TensorInfo& tensor : file.tensors()) names.push_back(tensor.name);
  EXPECT_THAT(names, testing::ElementsAre("embed", "layers.0.experts.0.w1", "layers.0.experts.0.v1",
                                          "layers.0.experts.0.w2", "final_norm"));
  EXPECT_THAT(file.Find("embed")->shape, testing::ElementsAre(5, 3));
}

TEST(WorldFile, ConvertsToTheTablesType) {
  const TemporaryFolder folder;
  SaveWorld(Fill<double>(Table(DType::kFloat64)), {}, folder.Path("d"));
  const World single = LoadWorld(Table(DType::kFloat32), folder.Path("d"));
  EXPECT_EQ(WorldHash(single), WorldHash(Fill<float>(Table(DType::kFloat32))));  // 1/n rounded once
  SaveWorld(single, {}, folder.Path("f"));
  const World back = LoadWorld(Table(DType::kFloat64), folder.Path("f"));
  EXPECT_EQ(back.blocks[0].data->as<double>()[2], static_cast<double>(1.0f / 3));
}

TEST(WorldFile, RefusesAnotherModelsWorld) {
  const TemporaryFolder folder;
  const std::string path = folder.Path("w");
  SaveWorld(Fill<float>(Table(DType::kFloat32)), {}, path);
  const auto message = [&](const std::shared_ptr<const BlockTable>& table) {
    return MessageOf<std::invalid_argument>([&] { LoadWorld(table, path); });
  };
  EXPECT_THAT(message(Table(DType::kFloat32, 4)),
              AllOf(HasSubstr(path), HasSubstr("'embed' is [5, 3], the model needs [5, 4]")));
  EXPECT_THAT(message(Table(DType::kFloat32, 3, false)),
              HasSubstr("has a tensor 'layers.0.experts.0.w1', which the model has not"));
  SaveWorld(Fill<float>(Table(DType::kFloat32, 3, false)), {}, path);
  EXPECT_THAT(message(Table(DType::kFloat32)), HasSubstr("has no tensor 'layers.0.experts.0.w1'"));
}

TEST(WorldFile, FindsFlippedAndMissingValues) {
  const TemporaryFolder folder;
  SaveWorld(Fill<float>(Table(DType::kFloat32)), {}, folder.Path("w"));
  std::string content = folder.Read("w");
  content[content.size() - 20] ^= 1;
  const std::string flipped = folder.Write("flipped", content);
  EXPECT_THAT(MessageOf<std::invalid_argument>([&] { LoadWorld(Table(DType::kFloat32), flipped); }),
              AllOf(HasSubstr(flipped), HasSubstr("world_hash")));
  for (const std::size_t size : {content.size() - 1, content.size() / 2, std::size_t{20}}) {
    const std::string cut = folder.Write("cut", content.substr(0, size));
    EXPECT_THAT(MessageOf<std::invalid_argument>([&] { LoadWorld(Table(DType::kFloat32), cut); }),
                HasSubstr(cut));
    EXPECT_THAT(MessageOf<std::invalid_argument>([&] { ReadWorldMetadata(cut); }), HasSubstr(cut));
  }
}

}  // namespace
}  // namespace spes::trainer
