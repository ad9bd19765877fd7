// Published values as tensors on devices.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/StorageImpl.h>

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "trainer/sync/block_table.h"

namespace spes::trainer {

// A value goes to a device once, however many nodes of the process refer to it there, and stays for
// as long as one of its tensors does. Thread-safe.
class PublishedTensors {
 public:
  // `value` in the shape of BlockTensor on `device`, converted to `type`. On the host, in its own
  // type, it is the value's own memory: `value` must outlive the tensor. Nobody may write to it.
  at::Tensor Get(const BlockSpec& spec, DType dtype, const SharedBuffer& value, at::Device device,
                 at::ScalarType type);

 private:
  // Neither keeps anything alive.
  struct Copy {
    std::weak_ptr<const Buffer> value;
    c10::weak_intrusive_ptr<c10::StorageImpl> memory;
    bool InUse() const { return !value.expired() && !memory.expired(); }
  };
  struct Place {
    const Buffer* value;
    at::Device device;
    at::ScalarType type;
    bool operator<(const Place& other) const;
  };
  void Forget();

  std::mutex mutex_;
  std::map<Place, Copy> copies_;
  std::size_t forget_at_ = 256;  // copies; then those that nobody uses are forgotten
};

}  // namespace spes::trainer
