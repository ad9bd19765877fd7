// Blocks as tensors, without copies.
#pragma once

#include <ATen/core/Tensor.h>

#include "trainer/sync/block_table.h"

namespace spes::trainer {

at::ScalarType ScalarTypeOf(DType type);

// A tensor over `buffer`, which it keeps alive: a shared block in the shape of its one part, an
// expert's block flat, [buffer_elements]. A published buffer must not be written through it.
at::Tensor BlockTensor(const BlockSpec& spec, DType type, SharedBuffer buffer);

// The same view of a block's whole memory, `flat` [buffer_elements], wherever that is.
at::Tensor ShapedBlock(const BlockSpec& spec, const at::Tensor& flat);

}  // namespace spes::trainer
