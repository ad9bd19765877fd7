// Every operator made of LibTorch's against the one of the same name that computes on host memory:
// values and gradients, in both types; and what bfloat16 adds.
#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/trainer/model/operator_testing.h"
#include "trainer/model/operators.h"

namespace spes::trainer {
namespace {

const Operators& kHost = HostOperators();
const Operators& kAten = AtenOperators();

// Runs `f` with either table on the same inputs, in float64 and in float32.
void ExpectTwins(const std::function<Tensors(const Operators&, const Tensors&)>& f,
                 const Tensors& inputs) {
  const auto with = [&](const Operators& table) {
    return [&f, &table](const Tensors& t) { return f(table, t); };
  };
  ExpectEqual(with(kAten), with(kHost), inputs, 1e-12);
  Tensors narrow;
  for (const at::Tensor& input : inputs) narrow.push_back(input.to(at::kFloat));
  ExpectEqual(with(kAten), with(kHost), narrow, 3e-6);
}

class AtenOperatorsTest : public ::testing::Test {
 protected:
  void SetUp() override { at::manual_seed(6); }
};

TEST_F(AtenOperatorsTest, Norms) {
  for (const std::int64_t n : {1, 7, 32}) {
    ExpectTwins([](const Operators& use,
                   const Tensors& t) { return Tensors{use.rms_norm(t[0], t[1], 1e-6)}; },
                {Random({5, n}), Random({n})});
    ExpectTwins(
        [](const Operators& use, const Tensors& t) {
          const SumAndNorm both = use.add_rms_norm(t[0], t[1], t[2], 1e-6);
          return Tensors{both.sum, both.norm};
        },
        {Random({5, n}), Random({5, n}), Random({n})});
  }
}

TEST_F(AtenOperatorsTest, Project) {
  ExpectTwins(
      [](const Operators& use, const Tensors& t) {
        return use.project(t[0], {t[1], t[2], t[3]});
      },
      {Random({6, 5}), Random({3, 5}), Random({4, 5}), Random({1, 5})});
}

TEST_F(AtenOperatorsTest, Embed) {
  const at::Tensor tokens = at::tensor({3, 0, 3, 2}, at::kInt);
  ExpectTwins(
      [&](const Operators& use, const Tensors& t) { return Tensors{use.embed(tokens, t[0])}; },
      {Random({5, 7})});
  EXPECT_THROW(kAten.embed(at::tensor({5}, at::kInt), Random({5, 7})), std::runtime_error);
  EXPECT_THROW(kAten.embed(at::tensor({-1}, at::kInt), Random({5, 7})), std::runtime_error);
}

TEST_F(AtenOperatorsTest, NormaliseAndRotate) {
  constexpr std::int64_t kContext = 5, kHeads = 3, kWidth = 6, kRows = 3 * kContext;
  const at::Tensor table = RotaryTable(kContext, kWidth, 50, at::kDouble);
  for (const QkNorm norm : {QkNorm::kNone, QkNorm::kFull, QkNorm::kHead}) {
    const std::int64_t group = norm == QkNorm::kHead ? kWidth : kHeads * kWidth;
    ExpectTwins(
        [&](const Operators& use, const Tensors& t) {
          return Tensors{use.normalise_and_rotate(t[0], norm == QkNorm::kNone ? at::Tensor() : t[1],
                                                  norm, 1e-6, table.to(t[0].scalar_type()))};
        },
        {Random({kRows, kHeads * kWidth}), Random({group})});
  }
}

TEST_F(AtenOperatorsTest, CausalAttention) {
  struct Case {
    std::int64_t sequences;
    AttentionShape shape;
  };
  for (const Case& c : {Case{2, {1, 2, 1, 4}}, Case{1, {64, 2, 2, 8}}, Case{2, {65, 4, 2, 6}},
                        Case{1, {130, 3, 1, 4}}, Case{3, {7, 1, 1, 2}}}) {
    const AttentionShape& s = c.shape;
    const std::int64_t rows = c.sequences * s.context;
    ExpectTwins(
        [&](const Operators& use, const Tensors& t) {
          return Tensors{use.causal_attention(t[0], t[1], t[2], s)};
        },
        {Random({rows, s.heads * s.head_width}), Random({rows, s.kv_heads * s.head_width}),
         Random({rows, s.kv_heads * s.head_width})});
  }
}

void ExpectSameDispatch(const Routing& a, const Routing& b) {
  EXPECT_TRUE(a.dispatch.slots.equal(b.dispatch.slots));
  EXPECT_TRUE(a.dispatch.offsets.equal(b.dispatch.offsets));
  EXPECT_EQ(a.dispatch.slots.scalar_type(), at::kInt);
  EXPECT_NEAR(a.entropy_sum, b.entropy_sum, 1e-6 * (1 + std::abs(b.entropy_sum)));
}

TEST_F(AtenOperatorsTest, Route) {
  for (const auto& [E, K] :
       {std::pair<std::int64_t, std::int64_t>{1, 1}, {5, 5}, {16, 2}, {37, 3}}) {
    std::vector<double> preference(static_cast<std::size_t>(E), 1);
    preference.back() = 3;
    for (const double* leaning :
         {static_cast<const double*>(nullptr), static_cast<const double*>(preference.data())}) {
      for (const bool renormalise : {false, true}) {
        const RouterOptions options{K, renormalise, 0.3, 0.2, leaning};
        const at::Tensor logits = Random({11, E});
        ExpectTwins(
            [&](const Operators& use, const Tensors& t) {
              const Routing r = use.route(t[0], options);
              return Tensors{r.weights, r.losses};
            },
            {logits});
        ExpectSameDispatch(kAten.route(logits, options), kHost.route(logits, options));
      }
    }
  }
}

TEST_F(AtenOperatorsTest, RouteBreaksTiesByIndex) {
  const at::Tensor logits = at::randint(0, 3, {200, 12}, at::TensorOptions(at::kFloat));
  const RouterOptions options{.experts_per_token = 4};
  ExpectSameDispatch(kAten.route(logits, options), kHost.route(logits, options));
  ExpectSameDispatch(kAten.route(at::zeros({3, 12}), options),
                     kHost.route(at::zeros({3, 12}), options));
}

TEST_F(AtenOperatorsTest, MixExperts) {
  constexpr std::int64_t N = 9, E = 4, K = 2, D = 5;
  // F · D = 15 elements leave a gap behind w1, 40 do not.
  for (const std::int64_t F : {3, 8}) {
    const std::int64_t step = (F * D + 7) / 8 * 8;
    const ExpertLayout layout{D, F, 0, step, 2 * step};
    at::Tensor logits = Random({N, E});
    logits.select(1, 2).fill_(-100);  // nobody goes to expert 2
    const Routing routing = kHost.route(logits, {.experts_per_token = K});
    Tensors inputs{Random({N, D}), Random({N, K})};
    for (int e = 0; e < E; ++e) inputs.push_back(Random({3 * step}));
    ExpectTwins(
        [&](const Operators& use, const Tensors& t) {
          return Tensors{
              use.mix_experts(t[0], t[1], routing.dispatch, at::TensorList(t).slice(2), layout)};
        },
        inputs);
  }
}

TEST_F(AtenOperatorsTest, FrozenExpertsPassGradientsButGetNone) {
  const ExpertLayout layout{2, 4, 0, 8, 16};
  const Routing routing = kAten.route(Random({6, 2}), {.experts_per_token = 2});
  const at::Tensor x = Random({6, 2}).requires_grad_(), w = Random({6, 2}).requires_grad_();
  const Tensors blocks{Random({24}), Random({24}).requires_grad_()};
  kAten.mix_experts(x, w, routing.dispatch, blocks, layout).sum().backward();
  EXPECT_FALSE(blocks[0].grad().defined());
  EXPECT_TRUE(blocks[1].grad().defined());
  EXPECT_TRUE((w.grad() != 0).all().item<bool>());
}

TEST_F(AtenOperatorsTest, CrossEntropy) {
  const at::Tensor targets = at::tensor({0, 18, 4, 4}, at::kInt);
  const auto f = [&](const Operators& use, const Tensors& t) {
    return Tensors{use.cross_entropy(t[0], targets, 0.1)};
  };
  ExpectTwins(f, {Random({4, 19})});
  ExpectTwins(f, {Random({4, 19}) * 1e4});  // no overflow
  EXPECT_THROW(kAten.cross_entropy(Random({4, 18}), targets, 0), std::runtime_error);
}

TEST_F(AtenOperatorsTest, NaNIsNotSwallowed) {
  at::Tensor x = Random({4, 16}).to(at::kFloat);
  x[1][3] = NAN;
  const auto all_nan = [](const at::Tensor& row) { return row.isnan().all().item<bool>(); };
  EXPECT_TRUE(all_nan(kAten.rms_norm(x, at::ones({16}), 1e-6)[1]));
  EXPECT_TRUE(all_nan(kAten.cross_entropy(x, at::tensor({0, 0, 0, 0}, at::kInt), 0.1)));
  EXPECT_TRUE(all_nan(kAten.route(x, {.experts_per_token = 2, .z = 1}).losses.slice(0, 1)));
}

// ---- bfloat16: matrices, hidden states and results in 16 bits, statistics and losses in 32.

// Inputs rounded to 16 bits, and the operator in float32 on what that left.
void ExpectNearInBfloat16(const Operator& f, const Tensors& inputs,
                          const std::vector<bool>& rounded) {
  Tensors narrow, wide;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const at::Tensor x = inputs[i].to(at::kFloat);
    narrow.push_back(rounded[i] ? x.to(at::kBFloat16) : x);
    wide.push_back(narrow.back().to(at::kFloat));
  }
  ExpectEqual(f, f, wide, 0);  // runs in float32 too, and gives the same every time
  const Tensors a = OutputsAndGradients(f, narrow), b = OutputsAndGradients(f, wide);
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double error = (a[i].to(at::kFloat) - b[i]).abs().max().item<double>();
    EXPECT_LE(error, 0.04 * (0.1 + b[i].abs().max().item<double>())) << "tensor " << i;
  }
  // A gradient has the type of what it is the gradient of.
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    EXPECT_EQ(a[a.size() - inputs.size() + i].scalar_type(), narrow[i].scalar_type()) << i;
  }
}

TEST_F(AtenOperatorsTest, InBfloat16) {
  ExpectNearInBfloat16([](const Tensors& t) { return Tensors{kAten.rms_norm(t[0], t[1], 1e-6)}; },
                       {Random({5, 64}), Random({64})}, {true, false});
  ExpectNearInBfloat16([](const Tensors& t) { return kAten.project(t[0], {t[1]}); },
                       {Random({5, 64}), Random({8, 64})}, {true, true});
  const at::Tensor table = RotaryTable(5, 6, 50, at::kFloat);
  ExpectNearInBfloat16(
      [&](const Tensors& t) {
        return Tensors{kAten.normalise_and_rotate(t[0], t[1], QkNorm::kFull, 1e-6, table)};
      },
      {Random({10, 18}), Random({18})}, {true, false});
  ExpectNearInBfloat16(
      [](const Tensors& t) {
        return Tensors{kAten.causal_attention(t[0], t[1], t[2], {16, 2, 1, 8})};
      },
      {Random({32, 16}), Random({32, 8}), Random({32, 8})}, {true, true, true});
  const ExpertLayout layout{8, 4, 0, 32, 64};
  const Routing routing = kAten.route(Random({12, 3}), {.experts_per_token = 2});
  ExpectNearInBfloat16(
      [&](const Tensors& t) {
        return Tensors{
            kAten.mix_experts(t[0], t[1], routing.dispatch, at::TensorList(t).slice(2), layout)};
      },
      {Random({12, 8}), Random({12, 2}), Random({96}), Random({96}), Random({96})},
      {true, false, true, true, true});
  const at::Tensor targets = at::tensor({0, 18, 4, 4}, at::kInt);
  ExpectNearInBfloat16(
      [&](const Tensors& t) { return Tensors{kAten.cross_entropy(t[0], targets, 0.1)}; },
      {Random({4, 19})}, {true});
}

TEST_F(AtenOperatorsTest, StatisticsAndLossesOfBfloat16AreFloat32) {
  // Rounded once, at the end.
  const at::Tensor x = Random({5, 300}).to(at::kBFloat16), w = Random({300}).to(at::kFloat);
  const at::Tensor y = kAten.rms_norm(x, w, 1e-6);
  EXPECT_TRUE(y.equal(kAten.rms_norm(x.to(at::kFloat), w, 1e-6).to(at::kBFloat16)));
  const at::Tensor loss =
      kAten.cross_entropy(at::zeros({1, 3}, at::kBFloat16), at::tensor({1}, at::kInt), 0);
  EXPECT_EQ(loss.scalar_type(), at::kFloat);
  EXPECT_NEAR(loss[0].item<double>(), std::log(3.0), 1e-7);
}

}  // namespace
}  // namespace spes::trainer
