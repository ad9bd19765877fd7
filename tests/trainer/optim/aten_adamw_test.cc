// AdamW in LibTorch's operators against that on plain memory.
#include "trainer/optim/aten_adamw.h"

#include <gtest/gtest.h>

#include <vector>

#include "trainer/model/autograd.h"
#include "trainer/optim/adamw.h"

namespace spes::trainer {
namespace {

void ExpectTwins(DType dtype, at::ScalarType type, double tolerance) {
  const OptimizerConfig config{.weight_decay = 0.3};
  at::manual_seed(8);
  const std::vector<std::int64_t> sizes{1, 17, 64};
  const at::TensorOptions options(type);
  std::vector<at::Tensor> w, m, v, host_w, host_m, host_v;
  for (const std::int64_t n : sizes) {
    w.push_back(at::randn({n}, options));
    m.push_back(at::zeros({n}, options));
    v.push_back(at::zeros({n}, options));
    host_w.push_back(w.back().clone());
    host_m.push_back(m.back().clone());
    host_v.push_back(v.back().clone());
  }
  std::vector<std::int64_t> updates{0, 3, 100};  // blocks have their own counts
  for (int t = 1; t <= 5; ++t) {
    const double lr = 0.01 * t, factor = 0.7;
    std::vector<at::Tensor> gradients;
    double square = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      gradients.push_back(at::randn({sizes[i]}, options));
      const void* g = gradients[i].const_data_ptr();
      square += SquaredNorm(dtype, g, sizes[i]);
      AdamWUpdate(config, lr, factor, dtype, g, sizes[i], ++updates[i],
                  host_w[i].mutable_data_ptr(), host_m[i].mutable_data_ptr(),
                  host_v[i].mutable_data_ptr());
    }
    EXPECT_NEAR(SquaredNorm(gradients), square, 10 * tolerance * square);
    AdamWUpdate(config, lr, factor, gradients, w, m, v, updates);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      EXPECT_TRUE(w[i].allclose(host_w[i], tolerance, tolerance)) << t << " " << i;
      EXPECT_TRUE(m[i].allclose(host_m[i], tolerance, tolerance)) << t << " " << i;
      EXPECT_TRUE(v[i].allclose(host_v[i], tolerance, tolerance)) << t << " " << i;
    }
  }
}

TEST(AtenAdamW, EqualsThatOnPlainMemory) {
  ExpectTwins(DType::kFloat64, at::kDouble, 1e-14);
  ExpectTwins(DType::kFloat32, at::kFloat, 2e-6);
}

TEST(AtenAdamW, TakesNoBlocks) {
  AdamWUpdate({}, 0.1, 1, {}, {}, {}, {}, {});
  EXPECT_EQ(SquaredNorm(at::TensorList()), 0);
}

}  // namespace
}  // namespace spes::trainer
