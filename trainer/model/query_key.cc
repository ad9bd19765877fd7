#include "trainer/model/query_key.h"

#include <cmath>

#include "trainer/model/autograd.h"
#include "trainer/model/rms_norm.h"

namespace spes::trainer {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Turns every pair (x[i], x[i + half]) of a head by its angle; `sign` −1 turns back. The sines lie
// behind the cosines.
template <class T>
void Rotate(const T* __restrict cos, T sign, std::int64_t heads, std::int64_t half,
            T* __restrict x) {
  const T* __restrict sin = cos + half;
  for (std::int64_t h = 0; h < heads; ++h) {
    T* __restrict a = x + h * 2 * half, * __restrict b = a + half;
    for (std::int64_t i = 0; i < half; ++i) {
      const T s = sign * sin[i], first = a[i], second = b[i];
      a[i] = first * cos[i] - second * s;
      b[i] = second * cos[i] + first * s;
    }
  }
}

// A row is normalised in `groups` parts of `width` elements, and rotated in `heads` heads.
struct Layout {
  std::int64_t rows, row, context, half, heads, groups, width;
  Layout(const at::Tensor& x, const at::Tensor& table, QkNorm norm)
      : rows(x.size(0)),
        row(x.size(1)),
        context(table.size(0)),
        half(table.size(2)),
        heads(row / (2 * half)),
        groups(norm == QkNorm::kHead ? heads : 1),
        width(row / groups) {}
};

struct NormRotate : torch::autograd::Function<NormRotate> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            std::int64_t norm, double eps, const at::Tensor& table) {
    const Layout at(x, table, static_cast<QkNorm>(norm));
    at::Tensor y = at::empty_like(x), scale = at::empty({at.rows, at.groups}, x.options());
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "NormaliseAndRotate", [&] {
      const scalar_t *in = x.const_data_ptr<scalar_t>(), *w = weight.const_data_ptr<scalar_t>(),
                     *turns = table.const_data_ptr<scalar_t>();
      scalar_t *out = y.data_ptr<scalar_t>(), *s = scale.data_ptr<scalar_t>();
      for (std::int64_t r = 0; r < at.rows; ++r, in += at.row, out += at.row) {
        for (std::int64_t g = 0; g < at.groups; ++g) {
          *s++ = NormaliseRow(in + g * at.width, w, at.width, eps, out + g * at.width);
        }
        Rotate(turns + r % at.context * 2 * at.half, scalar_t{1}, at.heads, at.half, out);
      }
    });
    context->save_for_backward({x, weight, table, scale});
    context->saved_data["norm"] = norm;
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1], &table = saved[2], &scale = saved[3];
    const Layout at(x, table, static_cast<QkNorm>(context->saved_data["norm"].toInt()));
    const at::Tensor dy = gradients[0].contiguous();
    at::Tensor dx = at::empty_like(x), dweight, turned = at::empty({at.row}, x.options());
    if (context->needs_input_grad(1)) dweight = at::zeros_like(weight);
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "NormaliseAndRotate", [&] {
      const scalar_t *in = x.const_data_ptr<scalar_t>(), *w = weight.const_data_ptr<scalar_t>(),
                     *turns = table.const_data_ptr<scalar_t>(),
                     *s = scale.const_data_ptr<scalar_t>(), *g = dy.const_data_ptr<scalar_t>();
      scalar_t *out = dx.data_ptr<scalar_t>(), *t = turned.data_ptr<scalar_t>();
      scalar_t* dw = dweight.defined() ? dweight.data_ptr<scalar_t>() : nullptr;
      for (std::int64_t r = 0; r < at.rows; ++r, in += at.row, g += at.row, out += at.row) {
        for (std::int64_t i = 0; i < at.row; ++i) t[i] = g[i];
        Rotate(turns + r % at.context * 2 * at.half, scalar_t{-1}, at.heads, at.half, t);
        for (std::int64_t k = 0; k < at.groups; ++k) {
          NormaliseRowBackward(t + k * at.width, in + k * at.width, w, *s++, at.width,
                               out + k * at.width, dw);
        }
      }
    });
    return {dx, dweight, at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

struct RotateOnly : torch::autograd::Function<RotateOnly> {
  static at::Tensor Turned(const at::Tensor& x, const at::Tensor& table, int sign) {
    const Layout at(x, table, QkNorm::kNone);
    at::Tensor y = x.clone(at::MemoryFormat::Contiguous);
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "Rotate", [&] {
      for (std::int64_t r = 0; r < at.rows; ++r) {
        Rotate(table.const_data_ptr<scalar_t>() + r % at.context * 2 * at.half,
               static_cast<scalar_t>(sign), at.heads, at.half, y.data_ptr<scalar_t>() + r * at.row);
      }
    });
    return y;
  }
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x,
                            const at::Tensor& table) {
    context->save_for_backward({table});
    return Turned(x, table, 1);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    return {Turned(gradients[0], context->get_saved_variables()[0], -1), at::Tensor()};
  }
};

}  // namespace

at::Tensor RotaryTable(std::int64_t context, std::int64_t head_width, double theta,
                       at::ScalarType type) {
  const std::int64_t half = head_width / 2;
  at::Tensor table = at::empty({context, 2, half}, at::kDouble);
  double* p = table.data_ptr<double>();
  for (std::int64_t t = 0; t < context; ++t) {
    for (std::int64_t i = 0; i < half; ++i) {
      const double angle =
          static_cast<double>(t) *
          std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(head_width));
      p[t * 2 * half + i] = std::cos(angle);
      p[t * 2 * half + half + i] = std::sin(angle);
    }
  }
  return table.to(type);
}

at::Tensor NormaliseAndRotate(const at::Tensor& x, const at::Tensor& weight, QkNorm norm,
                              double eps, const at::Tensor& table) {
  if (norm == QkNorm::kNone) return RotateOnly::apply(x, table);
  return NormRotate::apply(x, weight, static_cast<std::int64_t>(norm), eps, table);
}

}  // namespace spes::trainer
