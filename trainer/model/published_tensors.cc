#include "trainer/model/published_tensors.h"

#include <algorithm>
#include <tuple>

#include "trainer/model/autograd.h"
#include "trainer/model/block_tensor.h"

namespace spes::trainer {

bool PublishedTensors::Place::operator<(const Place& other) const {
  const auto key = [](const Place& p) {
    return std::tuple(p.value, p.device.type(), p.device.index(), p.type);
  };
  return key(*this) < key(other);
}

at::Tensor PublishedTensors::Get(const BlockSpec& spec, DType dtype, const SharedBuffer& value,
                                 at::Device device, at::ScalarType type) {
  // An owner that owns nothing: who holds the value says how long it lives.
  const at::Tensor own = BlockTensor(spec, dtype, SharedBuffer(SharedBuffer(), value.get()));
  if (device.is_cpu() && type == own.scalar_type()) return own;
  const std::lock_guard lock(mutex_);
  const Place place{value.get(), device, type};
  if (const auto found = copies_.find(place); found != copies_.end()) {
    // Another value may have come to lie where this one lay.
    const auto memory = found->second.memory.lock();
    if (memory && found->second.value.lock() == value) {
      return at::empty({0}, own.options().device(device).dtype(type))
          .set_(at::Storage(memory), 0, own.sizes());
    }
  }
  at::Tensor copy = own.to(own.options().device(device).dtype(type));
  copies_.insert_or_assign(place, Copy{value, copy.storage().getWeakStorageImpl()});
  if (copies_.size() >= forget_at_) Forget();
  return copy;
}

void PublishedTensors::Forget() {
  std::erase_if(copies_, [](const auto& entry) { return !entry.second.InUse(); });
  forget_at_ = std::max<std::size_t>(256, 2 * copies_.size());
}

}  // namespace spes::trainer
