// The part of LibTorch that the trainer uses: tensors, operators, and functions with derivatives of
// their own. Precompiled; torch/torch.h is twice as large.
#pragma once

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>
