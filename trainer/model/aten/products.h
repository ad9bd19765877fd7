// Rows of the embedding and products with weight matrices, in LibTorch's operators: for tensors on
// any device, of any floating-point type.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace spes::trainer::aten {

// As spes::trainer::Embed; the tokens are on the host, the table anywhere.
at::Tensor Embed(const at::Tensor& tokens, const at::Tensor& table);

// As spes::trainer::Project; x and the weights are of one type.
std::vector<at::Tensor> Project(const at::Tensor& x, at::TensorList weights);

// Tokens [N] int32 of the host as indices on a device. Throws std::runtime_error on a token outside
// the vocabulary: a device would only end the process.
at::Tensor TokenIndices(const at::Tensor& tokens, std::int64_t vocabulary, at::Device device);

}  // namespace spes::trainer::aten
