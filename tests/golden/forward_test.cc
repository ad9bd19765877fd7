// The model against the reference: every activation at its ends, every loss, every gradient, by
// each set of operators.
#include <tuple>

#include "tests/golden/golden_file.h"
#include "tests/trainer/ways.h"
#include "trainer/model/autograd.h"
#include "trainer/model/block_tensor.h"
#include "trainer/model/model.h"
#include "trainer/optim/config.h"

namespace spes::trainer {
namespace {

using golden::GoldenFile;
using golden::RelativeError;

std::vector<double> Values(const at::Tensor& tensor) {
  const at::Tensor t = tensor.detach().to(at::kDouble).cpu().contiguous().flatten();
  return {t.const_data_ptr<double>(), t.const_data_ptr<double>() + t.numel()};
}

class Forward : public ::testing::TestWithParam<std::tuple<const char*, Way>> {
 protected:
  struct Run {
    ModelLosses losses;
    ModelTrace trace;
    World gradients;
    RoutingCounts counts;
  };

  Run Compute(DType dtype) const {
    const ModelConfig config = file_.Model(group_, dtype);
    const auto table = MakeBlockTable(config);
    const World world = file_.ReadWorld(group_ + "/param", table);
    const at::Device device(way_.device);
    std::vector<at::Tensor> parameters;
    for (BlockId id = 0; id < table->size(); ++id) {
      const SharedBuffer& data = world.blocks[static_cast<std::size_t>(id)].data;
      parameters.push_back(BlockTensor((*table)[id], dtype, data).to(device).requires_grad_());
    }
    const std::vector<std::int64_t> ids = file_.Integers(group_ + "/tokens");
    const at::Tensor rows = at::tensor(ids).view({3, 13}).to(at::kInt);
    Run run;
    const auto layers = static_cast<std::size_t>(config.layers);
    run.counts.routed.assign(layers,
                             std::vector<std::int64_t>(static_cast<std::size_t>(config.experts)));
    run.counts.entropy_sum.assign(layers, 0);
    run.losses =
        Model(config, table, 12, {.device = device, .library_operators = way_.library_operators})
            .Losses(parameters, rows.narrow(1, 0, 12).flatten().contiguous(),
                    rows.narrow(1, 1, 12).flatten().contiguous(), 12, &run.counts, nullptr,
                    &run.trace);
    run.losses.total.backward();
    run.gradients.table = table;
    for (BlockId id = 0; id < table->size(); ++id) {
      Buffer buffer = table->Allocate(id);
      const at::Tensor gradient =
          parameters[static_cast<std::size_t>(id)].grad().cpu().contiguous();
      std::memcpy(buffer.data(), gradient.const_data_ptr(), gradient.nbytes());
      run.gradients.blocks.push_back({0, std::make_shared<const Buffer>(std::move(buffer))});
    }
    return run;
  }

  void ExpectAll(DType dtype, double tolerance) const {
    const Run run = Compute(dtype);
    const auto near = [&](const std::vector<double>& actual, const char* name) {
      EXPECT_LE(RelativeError(actual, file_.Doubles(group_ + "/" + name)), tolerance) << name;
    };
    near(Values(run.trace.logits), "logits");
    near({Values(run.losses.output)[0]}, "ce");
    near({Values(run.losses.output)[1]}, "z");
    if (run.losses.router.defined()) {
      near(Values(at::stack(run.trace.router_logits)), "router_logits");
      near({Values(run.losses.router)[0]}, "lb");
      near({Values(run.losses.router)[1]}, "rz");
    }
    double sum = 0;
    for (const char* name : {"ce", "z", "lb", "rz"}) sum += file_.Doubles(group_ + "/" + name)[0];
    EXPECT_LE(RelativeError(Values(run.losses.total), std::vector{sum}), tolerance);
    golden::ExpectWorldsNear(run.gradients, file_.ReadWorld(group_ + "/grad", run.gradients.table),
                             tolerance);
  }

  GoldenFile file_;
  const std::string group_ = std::string("forward/") + std::get<0>(GetParam());
  const Way way_ = std::get<1>(GetParam());
};

TEST_P(Forward, EqualsTheReferenceInFloat64) { ExpectAll(DType::kFloat64, 1e-9); }

TEST_P(Forward, IsNearTheReferenceInFloat32) { ExpectAll(DType::kFloat32, 2e-4); }

// Shares and entropies for the log, against the reference's router logits.
TEST_P(Forward, CountsRouting) {
  const Run run = Compute(DType::kFloat64);
  EXPECT_EQ(run.counts.tokens, 36);
  const ModelConfig config = file_.Model(group_);
  if (config.experts == 0) return;
  const at::Tensor logits =
      at::tensor(file_.Doubles(group_ + "/router_logits")).view({config.layers, 36, -1});
  for (int l = 0; l < config.layers; ++l) {
    const at::Tensor p = logits[l].softmax(-1);
    const at::Tensor best = std::get<1>(p.topk(config.experts_per_token, -1));
    const at::Tensor counts = at::bincount(best.flatten(), {}, config.experts);
    for (int e = 0; e < config.experts; ++e) {
      EXPECT_EQ(run.counts.routed[static_cast<std::size_t>(l)][static_cast<std::size_t>(e)],
                counts[e].item<std::int64_t>());
    }
    EXPECT_NEAR(run.counts.entropy_sum[static_cast<std::size_t>(l)],
                -(p * p.log()).sum().item<double>(), 1e-9);
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, Forward,
                         ::testing::Combine(::testing::Values("olmoe", "qwen3_dense", "qwen3_moe"),
                                            ::testing::ValuesIn(Ways())),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param)) +
                                  std::get<1>(info.param).name;
                         });

TEST(Schedule, EqualsTheReference) {
  const GoldenFile file;
  const OptimizerConfig config{.lr = 4e-4, .warmup_steps = 2000, .decay_steps = 50000};
  const std::vector<double> expected = file.Doubles("schedule/lr");
  const std::vector<std::int64_t> steps = file.Integers("schedule/t");
  ASSERT_EQ(steps.size(), 10u);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    EXPECT_NEAR(LearningRate(config, steps[i]), expected[i], 1e-15 * 4e-4) << "t = " << steps[i];
  }
}

}  // namespace
}  // namespace spes::trainer
