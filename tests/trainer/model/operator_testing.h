// Two ways to compute the same: their values and their gradients, held against each other.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "trainer/model/autograd.h"

namespace spes::trainer {

using Tensors = std::vector<at::Tensor>;
using Operator = std::function<Tensors(const Tensors&)>;

inline at::Tensor Random(const std::vector<std::int64_t>& shape) {
  return at::randn(shape, at::TensorOptions(at::kDouble));
}

// Outputs, and the gradients of Σ output · some fixed weights.
inline Tensors OutputsAndGradients(const Operator& f, const Tensors& inputs) {
  Tensors leaves, results;
  for (const at::Tensor& input : inputs) leaves.push_back(input.clone().requires_grad_());
  at::Tensor sum = at::zeros({}, at::kDouble);
  for (const at::Tensor& output : f(leaves)) {
    const at::Tensor weights =
        at::arange(output.numel(), at::TensorOptions(at::kDouble)).sin().view(output.sizes());
    results.push_back(output.detach());
    sum = sum + (output * weights.to(output.scalar_type())).sum();
  }
  sum.backward();
  for (const at::Tensor& leaf : leaves) {
    results.push_back(leaf.grad().defined() ? leaf.grad() : at::zeros_like(leaf));
  }
  return results;
}

// Within `tolerance` of each tensor's largest element, or of 1.
inline void ExpectEqual(const Operator& actual, const Operator& reference, const Tensors& inputs,
                        double tolerance = 1e-11) {
  const Tensors a = OutputsAndGradients(actual, inputs), b = OutputsAndGradients(reference, inputs);
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].sizes(), b[i].sizes()) << i;
    const double error = (a[i] - b[i]).abs().max().item<double>();
    EXPECT_LE(error, tolerance * (1 + b[i].abs().max().item<double>())) << "tensor " << i;
  }
}

}  // namespace spes::trainer
