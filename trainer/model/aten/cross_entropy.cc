#include "trainer/model/aten/cross_entropy.h"

#include "trainer/model/aten/products.h"
#include "trainer/model/aten/wide.h"
#include "trainer/model/autograd.h"

namespace spes::trainer::aten {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// A function of its own makes the derivative in one tensor of the logits' size.
struct OutputLoss : torch::autograd::Function<OutputLoss> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& logits,
                            const at::Tensor& targets, double z_loss) {
    const at::Tensor z = Wide(logits), lse = z.logsumexp(-1);
    const at::Tensor target =
        TokenIndices(targets, logits.size(1), logits.device()).unsqueeze(1);  // [N, 1]
    context->save_for_backward({logits, target, lse});
    context->saved_data["z_loss"] = z_loss;
    return at::stack({(lse - z.gather(1, target).squeeze(1)).mean(), lse.square().mean() * z_loss});
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &logits = saved[0], &target = saved[1];
    const at::Tensor lse = saved[2].unsqueeze(1), d = gradients[0];
    const double N = static_cast<double>(logits.size(0));
    const double z_loss = context->saved_data["z_loss"].toDouble();
    const at::Tensor per_token = d[0] / N, factor = per_token + lse * (d[1] * (2 * z_loss / N));
    at::Tensor dlogits = (Wide(logits) - lse).exp_().mul_(factor);
    dlogits.scatter_add_(1, target, (-per_token).expand({logits.size(0), 1}));
    return {dlogits.to(logits.scalar_type()), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor CrossEntropy(const at::Tensor& logits, const at::Tensor& targets, double z_loss) {
  return OutputLoss::apply(logits, targets, z_loss);
}

}  // namespace spes::trainer::aten
