#include "trainer/checkpoint/coordinator_file.h"

#include <fmt/format.h>

#include <set>
#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/checkpoint/coordinator_metadata.h"

namespace spes::trainer {
namespace {

// The parts of a state's buffers, where they lie.
class Views {
 public:
  explicit Views(const BlockTable& table) : table_(table) {}

  void Add(const char* before, BlockId id, const char* after, const Buffer* data) {
    const BlockSpec& block = table_[id];
    const std::int64_t element = ElementBytes(table_.dtype());
    const std::int64_t bytes = block.buffer_elements * element;
    if (data == nullptr || data->bytes() != bytes) {
      throw std::invalid_argument(fmt::format("has {} bytes in {}{}{}, the model needs {}",
                                              data == nullptr ? 0 : data->bytes(), before,
                                              block.parts.front().name, after, bytes));
    }
    for (const BlockPart& part : block.parts) {
      views_.push_back({before + part.name + after,
                        table_.dtype(),
                        part.shape,
                        {data->data() + part.offset * element,
                         static_cast<std::size_t>(part.elements * element)}});
    }
  }

  void Add(const char* name, std::span<const double> values, bool list) {
    std::vector<std::int64_t> shape;
    if (list) shape.push_back(static_cast<std::int64_t>(values.size()));
    views_.push_back({name, DType::kFloat64, shape, std::as_bytes(values)});
  }

  std::span<const TensorView> all() const { return views_; }

 private:
  const BlockTable& table_;
  std::vector<TensorView> views_;
};

void Write(const CoordinatorState& state, const std::string& path, FileSystem& files) {
  // All fields by name, so that a new one does not compile until it is written, here or in
  // ToMetadata, and read.
  const auto& [scenario_hash, run, round, step, now_s, up_bytes, down_bytes, initial_hash, world,
               moments, updater, allocation, nodes, load, delivered, norms] = state;
  const auto& [velocity, adam, residuals] = updater;
  const BlockTable& table = *world.table;
  const Outline has = OutlineOf(state);
  CheckFields(state, has);

  Views views(table);
  for (BlockId id = 0; id < table.size(); ++id) {
    const auto i = static_cast<std::size_t>(id);
    views.Add("world/", id, "", world.blocks[i].data.get());
    if (!moments.empty() && moments[i]) {
      views.Add("moments/", id, "/first", moments[i]->first.get());
      views.Add("moments/", id, "/second", moments[i]->second.get());
    }
    if (!velocity.empty() && velocity[i]) views.Add("velocity/", id, "", velocity[i].get());
    if (!adam.empty() && adam[i]) {
      views.Add("adam/", id, "/first", &adam[i]->first);
      views.Add("adam/", id, "/second", &adam[i]->second);
    }
  }
  for (const auto& [id, residual] : residuals) views.Add("residual/", id, "", residual.get());
  views.Add("now_s", {&now_s, 1}, false);
  views.Add("load", load, true);
  views.Add("norms", norms, true);
  WriteSealed(path, ToMetadata(state, has), views.all(), files);
}

// The tensors of a file, each of which is asked for once and checked before it is read.
class Tensors {
 public:
  Tensors(const SealedFile& file, const BlockTable& table) : file_(file), table_(table) {}

  // While this is so, buffers that are read have no bytes: their tensors are checked only.
  bool checking = true;

  Buffer Block(const char* before, BlockId id, const char* after) {
    const BlockSpec& block = table_[id];
    Buffer data = checking ? Buffer(0) : table_.Allocate(id);
    for (const BlockPart& part : block.parts) {
      const TensorInfo& tensor =
          Find(before + part.name + after, SafetensorsName(table_.dtype()), part.shape);
      if (!checking) {
        file_.Read(tensor, data.data() + part.offset * ElementBytes(table_.dtype()));
      }
    }
    return data;
  }

  std::vector<double> List(const char* name) {
    const TensorInfo* found = file_.contents().Find(name);
    const std::int64_t size = found && found->shape.size() == 1 ? found->elements : 0;
    std::vector<double> values(static_cast<std::size_t>(size));
    file_.Read(Find(name, "F64", {size}), std::as_writable_bytes(std::span(values)).data());
    return values;
  }

  double Number(const char* name) {
    double value = 0;
    file_.Read(Find(name, "F64", {}), std::as_writable_bytes(std::span(&value, 1)).data());
    return value;
  }

  // No tensor is there that nobody has asked for.
  void CheckAll() const {
    if (asked_.size() == file_.contents().tensors().size()) return;
    for (const TensorInfo& tensor : file_.contents().tensors()) {
      if (asked_.contains(tensor.name)) continue;
      throw std::invalid_argument(
          fmt::format("has a tensor '{}', which the model has not", tensor.name));
    }
  }

 private:
  const TensorInfo& Find(const std::string& name, std::string_view dtype,
                         const std::vector<std::int64_t>& shape) {
    const TensorInfo* tensor = file_.contents().Find(name);
    if (tensor == nullptr) {
      throw std::invalid_argument(fmt::format("has no tensor '{}', which the model needs", name));
    }
    if (tensor->dtype != dtype || tensor->shape != shape) {
      throw std::invalid_argument(fmt::format("tensor '{}' is {} {}, the model needs {} {}", name,
                                              tensor->dtype, ShapeText(tensor->shape), dtype,
                                              ShapeText(shape)));
    }
    if (checking) asked_.insert(name);
    return *tensor;
  }

  const SealedFile& file_;
  const BlockTable& table_;
  std::set<std::string> asked_;
};

SharedBuffer Shared(Buffer data) { return std::make_shared<const Buffer>(std::move(data)); }

void ReadBuffers(Tensors& tensors, const Outline& has, CoordinatorState& state) {
  auto& [velocity, adam, residuals] = state.updater;
  state.moments.resize(has.moments.size());
  velocity.resize(has.velocity.size());
  adam.resize(has.adam.size());
  for (BlockId id = 0; id < state.world.table->size(); ++id) {
    const auto i = static_cast<std::size_t>(id);
    state.world.blocks[i].data = Shared(tensors.Block("world/", id, ""));
    if (!has.moments.empty() && has.moments[i]) {
      SharedBuffer first = Shared(tensors.Block("moments/", id, "/first"));
      SharedBuffer second = Shared(tensors.Block("moments/", id, "/second"));
      state.moments[i] = std::make_shared<const BlockMoments>(
          BlockMoments{std::move(first), std::move(second), *has.moments[i]});
    }
    if (!has.velocity.empty() && has.velocity[i]) {
      velocity[i] = std::make_shared<Buffer>(tensors.Block("velocity/", id, ""));
    }
    if (!has.adam.empty() && has.adam[i]) {
      Buffer first = tensors.Block("adam/", id, "/first");
      Buffer second = tensors.Block("adam/", id, "/second");
      adam[i] = std::make_shared<AdamMoments>(
          AdamMoments{std::move(first), std::move(second), *has.adam[i]});
    }
  }
  for (const BlockId id : has.residuals) {
    residuals[id] = std::make_shared<Buffer>(tensors.Block("residual/", id, ""));
  }
}

CoordinatorState Read(const SealedFile& file, std::shared_ptr<const BlockTable> table) {
  CoordinatorState state;
  state.world.table = std::move(table);
  const Outline has = FromMetadata(file.contents().metadata(), state);
  Tensors tensors(file, *state.world.table);
  state.now_s = tensors.Number("now_s");
  state.load = tensors.List("load");
  state.norms = tensors.List("norms");
  CheckFields(state, has);
  ReadBuffers(tensors, has, state);
  tensors.CheckAll();
  tensors.checking = false;
  ReadBuffers(tensors, has, state);
  return state;
}

}  // namespace

void WriteCoordinatorState(const CoordinatorState& state, const std::string& path,
                           FileSystem& files) {
  try {
    Write(state, path, files);
  } catch (const std::invalid_argument& e) {
    throw std::invalid_argument(fmt::format("{}: cannot be written: the state {}", path, e.what()));
  }
}

CoordinatorState ReadCoordinatorState(const std::string& path,
                                      std::shared_ptr<const BlockTable> table) {
  const SealedFile file(path);
  try {
    return Read(file, std::move(table));
  } catch (const DamagedFile&) {
    throw;
  } catch (const std::invalid_argument& e) {
    throw std::invalid_argument(path + ": " + OneLine(e.what()));
  }
}

}  // namespace spes::trainer
