#include "trainer/model/aten/products.h"

#include <stdexcept>
#include <string>

#include "trainer/model/autograd.h"

namespace spes::trainer::aten {

at::Tensor TokenIndices(const at::Tensor& tokens, std::int64_t vocabulary, at::Device device) {
  const std::int32_t* token = tokens.const_data_ptr<std::int32_t>();
  for (std::int64_t n = 0; n < tokens.size(0); ++n) {
    if (token[n] < 0 || token[n] >= vocabulary) {
      throw std::runtime_error("token " + std::to_string(token[n]) +
                               " is outside the model's vocabulary of " +
                               std::to_string(vocabulary));
    }
  }
  return tokens.to(at::TensorOptions(at::kLong).device(device));
}

at::Tensor Embed(const at::Tensor& tokens, const at::Tensor& table) {
  return table.index_select(0, TokenIndices(tokens, table.size(0), table.device()));
}

std::vector<at::Tensor> Project(const at::Tensor& x, at::TensorList weights) {
  std::vector<at::Tensor> outputs;
  for (const at::Tensor& weight : weights) outputs.push_back(at::mm(x, weight.t()));
  return outputs;
}

}  // namespace spes::trainer::aten
