// Coding a block and reading it back, each held against copying its bytes in the same run.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cmath>
#include <cstring>

#include "trainer/data/keyed_random.h"
#include "trainer/sync/codec.h"

namespace spes::trainer {
namespace {

constexpr std::int64_t kElements = 1 << 20;  // 4 MiB

// A block, its value before and after a round: the second moves each element by a thousandth or so.
struct Setting {
  Setting() {
    auto first = std::make_shared<Buffer>(kElements * 4);
    auto second = std::make_shared<Buffer>(kElements * 4);
    for (std::size_t i = 0; i < kElements; ++i) {
      // A sum of uniform numbers is close enough to a normal one.
      float x = 0, d = 0;
      for (std::uint64_t k = 0; k < 6; ++k) {
        x += static_cast<float>(Uniform(k, i) - 0.5);
        d += static_cast<float>(Uniform(6 + k, i) - 0.5);
      }
      first->as<float>()[i] = 0.03F * x;
      second->as<float>()[i] = 0.03F * x + 3e-5F * d;
    }
    before = std::move(first);
    after = std::move(second);
  }
  BlockSpec block =
      MakeBlock(DType::kFloat32, BlockKind::kShared, 0, -1, {{"w", {kElements / 1024, 1024}}});
  SharedBuffer before, after;
};

const Setting& TheSetting() {
  static const Setting setting;
  return setting;
}

template <class F>
double SecondsOf(F f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Alternates a copy of the block and `work`; reports GB/s of values and the share of copying's.
template <class F>
void AgainstCopying(benchmark::State& state, F work) {
  const Setting& s = TheSetting();
  Buffer copy(kElements * 4);
  double copying = 0, working = 0;
  for (auto _ : state) {
    copying += SecondsOf([&] {
      std::memcpy(copy.data(), s.after->data(), kElements * 4);
      benchmark::ClobberMemory();
    });
    const double seconds = SecondsOf(work);
    working += seconds;
    state.SetIterationTime(seconds);
  }
  const double bytes = static_cast<double>(state.iterations()) * kElements * 4;
  state.counters["GB_per_s"] = bytes / working / 1e9;
  state.counters["of_memcpy"] = copying / working;
}

void EncodeBlock(benchmark::State& state, const CodecConfig& config) {
  const Setting& s = TheSetting();
  Buffer residual(kElements * 4);
  std::size_t size = 0;
  AgainstCopying(state, [&] {
    size =
        Encode(config, DType::kFloat32, s.block, s.after, s.before.get(), &residual).code->size();
  });
  state.counters["of_float32"] = static_cast<double>(size) / (kElements * 4.0);
}

void DecodeBlock(benchmark::State& state, const CodecConfig& config) {
  const Setting& s = TheSetting();
  const auto code = Encode(config, DType::kFloat32, s.block, s.after, s.before.get(), nullptr).code;
  AgainstCopying(state, [&] {
    benchmark::DoNotOptimize(Decode(config, DType::kFloat32, s.block, *code, s.before.get()));
  });
}

constexpr CodecConfig kRaw;
constexpr CodecConfig kRawZstd{.zstd = 3};
constexpr CodecConfig kXorZstd{.differences = true, .zstd = 3};
constexpr CodecConfig kBf16{.kind = CodecKind::kBf16};
constexpr CodecConfig kInt8{.kind = CodecKind::kInt8, .differences = true};
constexpr CodecConfig kInt4{.kind = CodecKind::kInt4, .differences = true};
constexpr CodecConfig kInt4Feedback{
    .kind = CodecKind::kInt4, .differences = true, .error_feedback = true, .skip_unchanged = true};
constexpr CodecConfig kInt4Zstd{.kind = CodecKind::kInt4, .differences = true, .zstd = 3};
constexpr CodecConfig kTopK{.kind = CodecKind::kTopK, .differences = true};

#define SPES_CODEC_BENCH(config)                                                                  \
  BENCHMARK_CAPTURE(EncodeBlock, config, config)->UseManualTime()->Unit(benchmark::kMillisecond); \
  BENCHMARK_CAPTURE(DecodeBlock, config, config)->UseManualTime()->Unit(benchmark::kMillisecond)

SPES_CODEC_BENCH(kRaw);
SPES_CODEC_BENCH(kRawZstd);
SPES_CODEC_BENCH(kXorZstd);
SPES_CODEC_BENCH(kBf16);
SPES_CODEC_BENCH(kInt8);
SPES_CODEC_BENCH(kInt4);
SPES_CODEC_BENCH(kInt4Feedback);
SPES_CODEC_BENCH(kInt4Zstd);
SPES_CODEC_BENCH(kTopK);

}  // namespace
}  // namespace spes::trainer
