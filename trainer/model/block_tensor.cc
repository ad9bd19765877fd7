#include "trainer/model/block_tensor.h"
#include "trainer/model/autograd.h"

#include <utility>
#include <vector>

namespace spes::trainer {

at::ScalarType ScalarTypeOf(DType type) {
  return type == DType::kFloat32 ? at::kFloat : at::kDouble;
}

at::Tensor BlockTensor(const BlockSpec& spec, DType type, SharedBuffer buffer) {
  std::vector<std::int64_t> shape{spec.buffer_elements};
  if (spec.kind == BlockKind::kShared) shape = spec.parts[0].shape;
  void* data = const_cast<std::byte*>(buffer->data());
  return at::from_blob(
      data, shape, [held = std::move(buffer)](void*) mutable { held.reset(); },
      at::TensorOptions(ScalarTypeOf(type)));
}

at::Tensor ShapedBlock(const BlockSpec& spec, const at::Tensor& flat) {
  if (spec.kind != BlockKind::kShared) return flat;
  return flat.narrow(0, 0, spec.parts[0].elements).view(spec.parts[0].shape);
}

}  // namespace spes::trainer
