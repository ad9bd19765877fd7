// Every operator with a derivative of its own against the same formula in LibTorch's operators, in
// float64, values and gradients; and the arithmetic below.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "tests/trainer/model/operator_testing.h"
#include "trainer/model/attention.h"
#include "trainer/model/autograd.h"
#include "trainer/model/cross_entropy.h"
#include "trainer/model/embedding.h"
#include "trainer/model/experts.h"
#include "trainer/model/linear.h"
#include "trainer/model/query_key.h"
#include "trainer/model/rms_norm.h"
#include "trainer/model/router.h"
#include "trainer/model/vector_math.h"

namespace spes::trainer {
namespace {

at::Tensor NormReference(const at::Tensor& x, const at::Tensor& w) {
  return x * at::rsqrt((x * x).mean(-1, true) + 1e-6) * w;
}

class Operators : public ::testing::Test {
 protected:
  void SetUp() override { at::manual_seed(5); }
};

TEST_F(Operators, RmsNorm) {
  for (const std::int64_t n : {1, 7, 16, 33}) {
    ExpectEqual([](const Tensors& t) { return Tensors{RmsNorm(t[0], t[1], 1e-6)}; },
                [](const Tensors& t) { return Tensors{NormReference(t[0], t[1])}; },
                {Random({5, n}), Random({n})});
  }
}

TEST_F(Operators, AddRmsNorm) {
  const auto reference = [](const Tensors& t) {
    const at::Tensor sum = t[0] + t[1];
    return Tensors{sum, NormReference(sum, t[2])};
  };
  const Tensors inputs{Random({5, 19}), Random({5, 19}), Random({19})};
  ExpectEqual(
      [](const Tensors& t) {
        const SumAndNorm both = AddRmsNorm(t[0], t[1], t[2], 1e-6);
        return Tensors{both.sum, both.norm};
      },
      reference, inputs);
  // As at the end of the model: nobody reads the sum.
  ExpectEqual([](const Tensors& t) { return Tensors{AddRmsNorm(t[0], t[1], t[2], 1e-6).norm}; },
              [&](const Tensors& t) { return Tensors{reference(t)[1]}; }, inputs);
}

TEST_F(Operators, Project) {
  ExpectEqual(
      [](const Tensors& t) {
        return Project(t[0], {t[1], t[2]});
      },
      [](const Tensors& t) {
        return Tensors{at::mm(t[0], t[1].t()), at::mm(t[0], t[2].t())};
      },
      {Random({6, 5}), Random({3, 5}), Random({4, 5})});
}

TEST_F(Operators, Embed) {
  const at::Tensor tokens = at::tensor({3, 0, 3, 2}, at::kInt);
  ExpectEqual([&](const Tensors& t) { return Tensors{Embed(tokens, t[0])}; },
              [&](const Tensors& t) { return Tensors{t[0].index_select(0, tokens)}; },
              {Random({5, 7})});
  EXPECT_THROW(Embed(at::tensor({5}, at::kInt), Random({5, 7})), std::runtime_error);
  EXPECT_THROW(Embed(at::tensor({-1}, at::kInt), Random({5, 7})), std::runtime_error);
}

TEST_F(Operators, NormaliseAndRotate) {
  constexpr std::int64_t kContext = 5, kHeads = 3, kWidth = 6, kRows = 2 * kContext;
  const at::Tensor table = RotaryTable(kContext, kWidth, 50, at::kDouble);
  for (const QkNorm norm : {QkNorm::kNone, QkNorm::kFull, QkNorm::kHead}) {
    const std::int64_t group = norm == QkNorm::kHead ? kWidth : kHeads * kWidth;
    ExpectEqual(
        [&](const Tensors& t) {
          return Tensors{NormaliseAndRotate(t[0], t[1], norm, 1e-6, table)};
        },
        [&](const Tensors& t) {
          at::Tensor x = t[0].view({-1, group});
          if (norm != QkNorm::kNone) x = NormReference(x, t[1]);
          x = x.view({2, kContext, kHeads, 2, kWidth / 2});
          // (a + ib) · e^{i · position · θ^(−2j/width)}
          const at::Tensor position = at::arange(kContext, at::TensorOptions(at::kDouble));
          const at::Tensor j = at::arange(kWidth / 2, at::TensorOptions(at::kDouble));
          const at::Tensor angle =
              at::outer(position, at::pow(50.0, -2.0 * j / kWidth)).view({1, kContext, 1, -1});
          const at::Tensor a = x.select(3, 0), b = x.select(3, 1);
          return Tensors{
              at::stack({a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()}, 3)
                  .reshape({kRows, kHeads * kWidth})};
        },
        {Random({kRows, kHeads * kWidth}), Random({group})});
  }
}

TEST_F(Operators, CausalAttention) {
  struct Case {
    std::int64_t sequences;
    AttentionShape shape;
  };
  for (const Case& c : {Case{2, {1, 2, 1, 4}}, Case{1, {64, 2, 2, 8}}, Case{2, {65, 4, 2, 6}},
                        Case{1, {130, 3, 1, 4}}, Case{3, {7, 1, 1, 2}}}) {
    const AttentionShape& s = c.shape;
    const std::int64_t B = c.sequences, T = s.context, d = s.head_width;
    ExpectEqual([&](const Tensors& t) { return Tensors{CausalAttention(t[0], t[1], t[2], s)}; },
                [&](const Tensors& t) {
                  const auto heads = [&](const at::Tensor& x, std::int64_t n) {
                    return x.view({B, T, n, d}).transpose(1, 2).repeat_interleave(s.heads / n, 1);
                  };
                  const at::Tensor q = heads(t[0], s.heads), k = heads(t[1], s.kv_heads),
                                   v = heads(t[2], s.kv_heads);
                  const at::Tensor scores =
                      at::matmul(q, k.transpose(-1, -2)) / std::sqrt(static_cast<double>(d));
                  const at::Tensor mask = at::ones({T, T}, at::kBool).triu(1);
                  const at::Tensor p = scores.masked_fill(mask, -INFINITY).softmax(-1);
                  return Tensors{at::matmul(p, v).transpose(1, 2).reshape({B * T, s.heads * d})};
                },
                {Random({B * T, s.heads * d}), Random({B * T, s.kv_heads * d}),
                 Random({B * T, s.kv_heads * d})});
  }
}

TEST_F(Operators, Route) {
  for (const auto& [E, K] :
       {std::pair<std::int64_t, std::int64_t>{1, 1}, {5, 5}, {16, 2}, {37, 3}}) {
    for (const bool renormalise : {false, true}) {
      const RouterOptions options{K, renormalise, 0.3, 0.2};
      ExpectEqual(
          [&](const Tensors& t) {
            const Routing r = Route(t[0], options);
            return Tensors{r.weights, r.losses};
          },
          [&](const Tensors& t) {
            const at::Tensor p = t[0].softmax(-1);
            auto [w, chosen] = p.topk(options.experts_per_token, -1);
            if (renormalise) w = w / w.sum(-1, true);
            const at::Tensor share =
                at::bincount(chosen.flatten(), {}, t[0].size(1)).to(at::kDouble) /
                static_cast<double>(chosen.numel());
            const at::Tensor balance =
                0.3 * static_cast<double>(t[0].size(1)) * (share * p.mean(0)).sum();
            return Tensors{w, at::stack({balance, 0.2 * t[0].logsumexp(-1).pow(2).mean()})};
          },
          {Random({11, E})});
    }
  }
}

TEST_F(Operators, RouteGroupsSlotsAndBreaksTiesByIndex) {
  const at::Tensor logits =
      at::tensor({1.0, 1.0, 1.0, 0.0, 2.0, 2.0, 0.0, 5.0, 0.0}, at::kDouble).view({3, 3});
  const Routing routing = Route(logits, {.experts_per_token = 2});
  // Tokens choose {0, 1}, {1, 2}, {1, 0}.
  const std::vector<std::int32_t> slots(routing.dispatch.slots.const_data_ptr<std::int32_t>(),
                                        routing.dispatch.slots.const_data_ptr<std::int32_t>() + 6);
  EXPECT_EQ(slots, (std::vector<std::int32_t>{0, 5, 1, 2, 4, 3}));
  EXPECT_EQ(routing.dispatch.Slots(0), 2);
  EXPECT_EQ(routing.dispatch.Slots(1), 3);
  EXPECT_EQ(routing.dispatch.Slots(2), 1);
}

TEST_F(Operators, MixExperts) {
  constexpr std::int64_t N = 9, E = 4, K = 2, D = 5;
  // F · D = 15 elements leave a gap behind w1, 40 do not.
  for (const std::int64_t F : {3, 8}) {
    const std::int64_t step = (F * D + 7) / 8 * 8;
    const ExpertLayout layout{D, F, 0, step, 2 * step};
    at::Tensor logits = Random({N, E});
    logits.select(1, 2).fill_(-100);  // nobody goes to expert 2
    const Routing routing = Route(logits, {.experts_per_token = K});
    const at::Tensor chosen = std::get<1>(logits.topk(K, -1));
    Tensors inputs{Random({N, D}), Random({N, K})};
    for (int e = 0; e < E; ++e) inputs.push_back(Random({3 * step}));
    ExpectEqual(
        [&](const Tensors& t) {
          return Tensors{
              MixExperts(t[0], t[1], routing.dispatch, at::TensorList(t).slice(2), layout)};
        },
        [&](const Tensors& t) {
          at::Tensor y = at::zeros({N, D}, at::kDouble);
          for (std::int64_t e = 0; e < E; ++e) {
            const auto matrix = [&](std::int64_t at) {
              return t[static_cast<std::size_t>(2 + e)].narrow(0, at, F * D).view({F, D});
            };
            const at::Tensor up = at::mm(t[0], matrix(layout.w1).t());
            const at::Tensor out =
                at::mm(up * up.sigmoid() * at::mm(t[0], matrix(layout.v1).t()), matrix(layout.w2));
            const at::Tensor weight = (t[1] * (chosen == e).to(at::kDouble)).sum(-1, true);
            y = y + weight * out;
          }
          return Tensors{y};
        },
        inputs);
  }
}

TEST_F(Operators, FrozenExpertsPassGradientsButGetNone) {
  const ExpertLayout layout{2, 4, 0, 8, 16};
  const Routing routing = Route(Random({6, 2}), {.experts_per_token = 2});
  const at::Tensor x = Random({6, 2}).requires_grad_(), w = Random({6, 2}).requires_grad_();
  const Tensors blocks{Random({24}), Random({24}).requires_grad_()};
  MixExperts(x, w, routing.dispatch, blocks, layout).sum().backward();
  EXPECT_FALSE(blocks[0].grad().defined());
  EXPECT_TRUE(blocks[1].grad().defined());
  // The routing weight of the frozen expert has a gradient all the same.
  EXPECT_TRUE((w.grad() != 0).all().item<bool>());
}

TEST_F(Operators, CrossEntropy) {
  const at::Tensor targets = at::tensor({0, 18, 4, 4}, at::kInt);
  const auto check = [&](const at::Tensor& logits) {
    ExpectEqual(
        [&](const Tensors& t) { return Tensors{CrossEntropy(t[0], targets, 0.1)}; },
        [&](const Tensors& t) {
          const at::Tensor lse = t[0].logsumexp(-1);
          const at::Tensor target = t[0].gather(1, targets.to(at::kLong).view({-1, 1}));
          return Tensors{at::stack({(lse - target.squeeze(1)).mean(), 0.1 * lse.pow(2).mean()})};
        },
        {logits});
  };
  check(Random({4, 19}));
  check(Random({4, 19}) * 1e4);  // no overflow
  EXPECT_THROW(CrossEntropy(Random({4, 18}), targets, 0), std::runtime_error);
}

TEST_F(Operators, NaNIsNotSwallowed) {
  at::Tensor x = Random({4, 16}).to(at::kFloat);
  x[1][3] = NAN;
  const auto all_nan = [](const at::Tensor& row) { return row.isnan().all().item<bool>(); };
  EXPECT_TRUE(all_nan(RmsNorm(x, at::ones({16}), 1e-6)[1]));
  EXPECT_TRUE(all_nan(CausalAttention(x, x, x, {4, 1, 1, 16})[1]));
  EXPECT_TRUE(all_nan(CrossEntropy(x, at::tensor({0, 0, 0, 0}, at::kInt), 0.1)));
  EXPECT_TRUE(all_nan(Route(x, {.experts_per_token = 2, .z = 1}).losses.slice(0, 1)));
}

TEST(VectorMath, ExpIsAccurate) {
  double worst = 0;
  for (int i = -870000; i <= 880000; i += 7) {
    const float x = static_cast<float>(i) * 1e-4f;
    const double exact = std::exp(static_cast<double>(x));
    worst = std::max(worst, std::abs(static_cast<double>(Exp(x)) - exact) / exact);
  }
  EXPECT_LE(worst, 2 * 0x1p-24 * 2);  // two units in the last place
  EXPECT_EQ(Exp(0.0f), 1);
  EXPECT_LT(Exp(-std::numeric_limits<float>::infinity()), 2e-38f);
  EXPECT_GT(Exp(std::numeric_limits<float>::infinity()), 1e38f);
  EXPECT_TRUE(std::isnan(Exp(std::numeric_limits<float>::quiet_NaN())));
}

TEST(VectorMath, ReductionsTakeAnyLength) {
  std::vector<double> a, b, c;
  double sum = 0, dot = 0, three = 0, largest = -1e9;
  for (std::int64_t n = 1; n <= 70; ++n) {
    const double x = static_cast<double>(n);
    a.push_back(std::floor(20 * std::sin(x * 7)));  // small integers: sums are exact
    b.push_back(std::floor(20 * std::cos(x * 5)));
    c.push_back(std::floor(20 * std::cos(x * 3)));
    sum += a.back();
    dot += a.back() * b.back();
    three += a.back() * b.back() * c.back();
    largest = std::max(largest, a.back());
    EXPECT_EQ(Sum(a.data(), n), sum) << n;
    EXPECT_EQ(Dot(a.data(), b.data(), n), dot) << n;
    EXPECT_EQ(Dot(a.data(), b.data(), c.data(), n), three) << n;
    EXPECT_EQ(Max(a.data(), n), largest) << n;
    const std::vector<float> f(a.begin(), a.end());
    EXPECT_EQ(static_cast<double>(Sum(f.data(), n)), sum) << n;
    EXPECT_EQ(static_cast<double>(Max(f.data(), n)), largest) << n;
  }
}

}  // namespace
}  // namespace spes::trainer
