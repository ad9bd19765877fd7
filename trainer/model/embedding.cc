#include "trainer/model/embedding.h"
#include "trainer/model/autograd.h"

#include <cstring>
#include <stdexcept>
#include <string>

namespace spes::trainer {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

template <class T>
void AddRow(const T* __restrict from, std::int64_t n, T* __restrict to) {
  for (std::int64_t i = 0; i < n; ++i) to[i] += from[i];
}

struct Embedding : torch::autograd::Function<Embedding> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& table,
                            const at::Tensor& tokens) {
    const std::int64_t rows = tokens.size(0), vocabulary = table.size(0), n = table.size(1);
    const std::int32_t* token = tokens.const_data_ptr<std::int32_t>();
    at::Tensor y = at::empty({rows, n}, table.options());
    AT_DISPATCH_FLOATING_TYPES(table.scalar_type(), "Embed", [&] {
      const scalar_t* from = table.const_data_ptr<scalar_t>();
      scalar_t* to = y.data_ptr<scalar_t>();
      for (std::int64_t r = 0; r < rows; ++r) {
        if (token[r] < 0 || token[r] >= vocabulary) {
          throw std::runtime_error("token " + std::to_string(token[r]) +
                                   " is outside the model's vocabulary of " +
                                   std::to_string(vocabulary));
        }
        std::memcpy(to + r * n, from + token[r] * n, static_cast<std::size_t>(n) * sizeof(*to));
      }
    });
    context->save_for_backward({table, tokens});
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &table = saved[0], &tokens = saved[1];
    const at::Tensor dy = gradients[0].contiguous();
    const std::int64_t rows = tokens.size(0), n = table.size(1);
    const std::int32_t* token = tokens.const_data_ptr<std::int32_t>();
    at::Tensor dtable = at::zeros_like(table);
    AT_DISPATCH_FLOATING_TYPES(table.scalar_type(), "Embed", [&] {
      const scalar_t* from = dy.const_data_ptr<scalar_t>();
      scalar_t* to = dtable.data_ptr<scalar_t>();
      for (std::int64_t r = 0; r < rows; ++r) {
        AddRow(from + r * n, n, to + token[r] * n);
      }
    });
    return {dtable, at::Tensor()};
  }
};

}  // namespace

at::Tensor Embed(const at::Tensor& tokens, const at::Tensor& table) {
  return Embedding::apply(table, tokens);
}

}  // namespace spes::trainer
