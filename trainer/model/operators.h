// The model's operators as a table: the ones of trainer/model, which compute on host memory, and
// those of trainer/model/aten, made of LibTorch's operators. Both compute the same, to rounding.
#pragma once

#include "trainer/model/attention.h"
#include "trainer/model/cross_entropy.h"
#include "trainer/model/embedding.h"
#include "trainer/model/experts.h"
#include "trainer/model/linear.h"
#include "trainer/model/query_key.h"
#include "trainer/model/rms_norm.h"
#include "trainer/model/router.h"

namespace spes::trainer {

struct Operators {
  decltype(&Embed) embed;
  decltype(&RmsNorm) rms_norm;
  decltype(&AddRmsNorm) add_rms_norm;
  decltype(&Project) project;
  decltype(&NormaliseAndRotate) normalise_and_rotate;
  decltype(&CausalAttention) causal_attention;
  decltype(&Route) route;
  decltype(&MixExperts) mix_experts;
  decltype(&CrossEntropy) cross_entropy;
};

// Of tensors in host memory, float32 or float64.
const Operators& HostOperators();

// Of tensors on any device. Tokens and targets are on the host here too.
const Operators& AtenOperators();

}  // namespace spes::trainer
