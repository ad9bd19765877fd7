// Token embeddings.
#pragma once

#include <ATen/core/Tensor.h>

namespace spes::trainer {

// tokens [N] int32, table [V, D] → rows of the table [N, D]. Throws std::runtime_error on a token
// outside the vocabulary.
at::Tensor Embed(const at::Tensor& tokens, const at::Tensor& table);

}  // namespace spes::trainer
