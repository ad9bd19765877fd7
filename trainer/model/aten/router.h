// Routing in LibTorch's operators: for tensors on any device.
#pragma once

#include <ATen/core/Tensor.h>

#include "trainer/model/router.h"

namespace spes::trainer::aten {

// As spes::trainer::Route. The dispatch's slots are where the logits are, its offsets on the host:
// waits for the device once.
Routing Route(const at::Tensor& logits, const RouterOptions& options);

}  // namespace spes::trainer::aten
