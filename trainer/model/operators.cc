#include "trainer/model/operators.h"

#include "trainer/model/aten/attention.h"
#include "trainer/model/aten/cross_entropy.h"
#include "trainer/model/aten/experts.h"
#include "trainer/model/aten/norms.h"
#include "trainer/model/aten/products.h"
#include "trainer/model/aten/router.h"

namespace spes::trainer {

const Operators& HostOperators() {
  static constexpr Operators kOperators = {
      Embed,           RmsNorm, AddRmsNorm, Project,     NormaliseAndRotate,
      CausalAttention, Route,   MixExperts, CrossEntropy};
  return kOperators;
}

const Operators& AtenOperators() {
  static constexpr Operators kOperators = {aten::Embed,
                                           aten::RmsNorm,
                                           aten::AddRmsNorm,
                                           aten::Project,
                                           aten::NormaliseAndRotate,
                                           aten::CausalAttention,
                                           aten::Route,
                                           aten::MixExperts,
                                           aten::CrossEntropy};
  return kOperators;
}

}  // namespace spes::trainer
