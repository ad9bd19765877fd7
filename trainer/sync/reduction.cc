#include "trainer/sync/reduction.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "trainer/sync/trimmed_mean.h"

namespace spes::trainer {

namespace {

// How many contributions of n a robust rule leaves out at each end; at least one stays.
int Cut(const ReductionRule& rule, int n) {
  const int most = (n - 1) / 2;
  if (rule.kind == ReductionKind::kMedian) return most;
  // 0.29 · 100 is a little less than 29 in binary.
  return std::min(most, static_cast<int>(std::floor(rule.trim * n + 1e-9)));
}

}  // namespace

void Validate(const ReductionRule& rule) {
  if (!(rule.trim >= 0 && rule.trim < 0.5)) {
    throw std::invalid_argument(fmt::format(
        "a trim of {} at each end: it must be at least 0 and less than 0.5", rule.trim));
  }
}

Reduction::Reduction(const ReductionConfig& config, const World& previous, std::vector<int> members)
    : config_(config),
      previous_(previous),
      members_(std::move(members)),
      pending_(static_cast<int>(members_.size())),
      sums_(previous.blocks.size()) {
  Validate(config_.shared);
  Validate(config_.experts);
}

const ReductionRule& Reduction::RuleOf(BlockId id) const {
  return (*previous_.table)[id].kind == BlockKind::kShared ? config_.shared : config_.experts;
}

void Reduction::CheckAwaited(int node) const {
  if (!std::binary_search(members_.begin(), members_.end(), node) || waiting_.contains(node) ||
      next_ == members_.size() || node < members_[next_]) {
    throw std::logic_error(fmt::format("node {} is not awaited in this reduction", node));
  }
}

void Reduction::Add(int node, std::vector<NodeBlock> blocks, double tokens, double factor) {
  if (!(tokens > 0) || !(factor > 0)) {
    throw std::invalid_argument("tokens and factor of a contribution must be positive");
  }
  CheckAwaited(node);
  waiting_.emplace(node, Upload{std::move(blocks), tokens, factor});
  --pending_;
  Settle();
}

void Reduction::Exclude(int node) {
  CheckAwaited(node);
  waiting_.emplace(node, Upload{});
  --pending_;
  Settle();
}

void Reduction::Settle() {
  while (next_ < members_.size()) {
    const auto found = waiting_.find(members_[next_]);
    if (found == waiting_.end()) return;
    for (const NodeBlock& block : found->second.blocks) {
      AddToSum(found->first, found->second, block);
    }
    waiting_.erase(found);
    ++next_;
  }
}

void Reduction::AddToSum(int node, const Upload& upload, const NodeBlock& block) {
  const DType dtype = previous_.table->dtype();
  const ReductionKind kind = RuleOf(block.id).kind;
  Sum& sum = sums_[static_cast<std::size_t>(block.id)];
  if (kind == ReductionKind::kOwner && sum.count > 0) return;
  if (++sum.count == 1) sum.first_node = node;
  double weight = upload.factor;
  if (kind == ReductionKind::kTokenMean) weight *= upload.tokens;
  if (IsRobust(kind)) {
    weight = 1;
    sum.held.push_back(block.data);
  } else {
    sum.mean.Add(dtype, block.data, weight);
  }
  if (!block.moments) return;
  sum.first.Add(dtype, block.moments->first, weight);
  sum.second.Add(dtype, block.moments->second, weight);
  sum.updates = std::max(sum.updates, block.moments->updates);
  sum.moments = sum.first.count() == 1 ? block.moments : nullptr;
}

SharedBuffer Reduction::Reduced(BlockId id, Sum& sum) const {
  if (sum.held.empty()) return sum.mean.Finish(previous_.table->dtype());
  if (sum.count == 1) return std::move(sum.held.front());
  return TrimmedMean(previous_.table->dtype(), sum.held, Cut(RuleOf(id), sum.count));
}

SharedMoments Reduction::ReducedMoments(Sum& sum) const {
  if (sum.first.count() <= 1) return std::move(sum.moments);
  const DType dtype = previous_.table->dtype();
  return std::make_shared<const BlockMoments>(
      BlockMoments{sum.first.Finish(dtype), sum.second.Finish(dtype), sum.updates});
}

Reduction::Result Reduction::Finish(Version version) {
  if (pending_ != 0) throw std::logic_error("a reduction was finished before all members settled");
  Result result{previous_, std::vector<int>(sums_.size(), kUnchanged),
                std::vector<SharedMoments>(sums_.size())};
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    Sum& sum = sums_[i];
    if (sum.count == 0) continue;
    result.source[i] = sum.count == 1 ? sum.first_node : kComputed;
    result.world.blocks[i] = {version, Reduced(static_cast<BlockId>(i), sum)};
    result.moments[i] = ReducedMoments(sum);
    sum = {};  // a robust rule's contributions
  }
  previous_ = {};
  return result;
}

}  // namespace spes::trainer
