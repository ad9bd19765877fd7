#include "trainer/checkpoint/world_file.h"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>
#include <vector>

#include "trainer/checkpoint/safetensors.h"

namespace spes::trainer {
namespace {

constexpr const char* kHash = "world_hash";

}  // namespace

void SaveWorld(const World& world, const std::map<std::string, std::string>& metadata,
               const std::string& path) {
  const BlockTable& table = *world.table;
  const std::int64_t element = ElementBytes(table.dtype());
  std::vector<TensorView> tensors;
  for (BlockId id = 0; id < table.size(); ++id) {
    const std::byte* data = world.blocks[static_cast<std::size_t>(id)].data->data();
    for (const BlockPart& part : table[id].parts) {
      tensors.push_back(
          {part.name,
           table.dtype(),
           part.shape,
           {data + part.offset * element, static_cast<std::size_t>(part.elements * element)}});
    }
  }
  std::map<std::string, std::string> all = metadata;
  all[kHash] = WorldHash(world);
  WriteSafetensors(path, all, tensors);
}

World LoadWorld(std::shared_ptr<const BlockTable> table, const std::string& path) {
  const SafetensorsFile file(path);
  const auto fail = [&path](const std::string& why) {
    throw std::invalid_argument(path + ": " + why);
  };
  // All names and shapes first: a large file of another model is refused before it is read.
  bool same_type = true;
  for (const BlockSpec& block : *table) {
    for (const BlockPart& part : block.parts) {
      const TensorInfo* tensor = file.Find(part.name);
      if (tensor == nullptr) {
        fail(fmt::format("has no tensor '{}', which the model needs", part.name));
      }
      if (tensor->shape != part.shape) {
        fail(fmt::format("tensor '{}' is {}, the model needs {}", part.name,
                         ShapeText(tensor->shape), ShapeText(part.shape)));
      }
      same_type &= tensor->bytes == part.elements * ElementBytes(table->dtype());
    }
  }
  for (const TensorInfo& tensor : file.tensors()) {
    if (!table->Find(tensor.name)) {
      fail(fmt::format("has a tensor '{}', which the model has not", tensor.name));
    }
  }

  World world{std::move(table), {}};
  for (BlockId id = 0; id < world.table->size(); ++id) {
    Buffer data = world.table->Allocate(id);
    for (const BlockPart& part : (*world.table)[id].parts) {
      file.Read(*file.Find(part.name), world.table->dtype(),
                data.data() + part.offset * ElementBytes(world.table->dtype()));
    }
    world.blocks.push_back({0, std::make_shared<const Buffer>(std::move(data))});
  }
  // The hash is of the file's own type; after a conversion it says nothing.
  const auto hash = file.metadata().find(kHash);
  if (same_type && hash != file.metadata().end() && hash->second != WorldHash(world)) {
    fail("is damaged: its values do not give the world_hash in its metadata");
  }
  return world;
}

std::map<std::string, std::string> ReadWorldMetadata(const std::string& path) {
  return SafetensorsFile(path).metadata();
}

}  // namespace spes::trainer
