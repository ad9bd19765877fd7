#include "trainer/sync/reduction.h"

#include <Eigen/Core>
#include <algorithm>
#include <stdexcept>
#include <string>

namespace spes::trainer {

namespace {

template <class T>
using Values = Eigen::Map<Eigen::Array<T, Eigen::Dynamic, 1>, Eigen::Aligned64>;
template <class T>
using ConstValues = Eigen::Map<const Eigen::Array<T, Eigen::Dynamic, 1>, Eigen::Aligned64>;

template <class T>
Values<T> AsArray(Buffer& b) {
  return {b.as<T>().data(), static_cast<Eigen::Index>(b.as<T>().size())};
}
template <class T>
ConstValues<T> AsArray(const Buffer& b) {
  return {b.as<T>().data(), static_cast<Eigen::Index>(b.as<T>().size())};
}

template <class T>
void AddScaled(Buffer& total, const Buffer& x, double weight) {
  AsArray<T>(total) += static_cast<T>(weight) * AsArray<T>(x);
}

template <class T>
void Divide(Buffer& total, double weight) {
  AsArray<T>(total) /= static_cast<T>(weight);
}

}  // namespace

Reduction::Reduction(const Allocation& allocation, const World& previous, std::vector<int> members)
    : allocation_(allocation),
      previous_(previous),
      members_(std::move(members)),
      pending_(static_cast<int>(members_.size())),
      sums_(previous.blocks.size()) {}

void Reduction::CheckAwaited(int node) const {
  if (!std::binary_search(members_.begin(), members_.end(), node) || waiting_.contains(node) ||
      next_ == members_.size() || node < members_[next_]) {
    throw std::logic_error("node " + std::to_string(node) + " is not awaited in this reduction");
  }
}

void Reduction::Add(int node, std::vector<NodeBlock> blocks, double weight) {
  if (!(weight > 0)) throw std::invalid_argument("a weight in a mean must be positive");
  CheckAwaited(node);
  waiting_.emplace(node, Upload{std::move(blocks), weight});
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
      if (!allocation_.Trains(found->first, block.id)) {
        throw std::logic_error("a contribution to a block of another node");
      }
      AddToSum(sums_[static_cast<std::size_t>(block.id)], found->first, block,
               found->second.weight);
    }
    waiting_.erase(found);
    ++next_;
  }
}

void Reduction::AddToSum(Sum& sum, int node, const NodeBlock& block, double weight) {
  sum.weight += weight;
  if (!sum.single && !sum.total) {
    sum.single = block.data;
    sum.single_weight = weight;
    sum.single_node = node;
    return;
  }
  const bool f32 = previous_.table->dtype() == DType::kFloat32;
  const auto add = f32 ? AddScaled<float> : AddScaled<double>;
  if (!sum.total) {
    sum.total = std::make_unique<Buffer>(previous_.table->Allocate(block.id));
    add(*sum.total, *sum.single, sum.single_weight);
    sum.single.reset();
  }
  add(*sum.total, *block.data, weight);
}

Reduction::Result Reduction::Finish(Version version) {
  if (pending_ != 0) throw std::logic_error("a reduction was finished before all members settled");
  Result result{std::move(previous_), std::vector<int>(sums_.size(), kUnchanged)};
  World& world = result.world;
  const auto divide = world.table->dtype() == DType::kFloat32 ? Divide<float> : Divide<double>;
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    Sum& sum = sums_[i];
    if (sum.total) {
      divide(*sum.total, sum.weight);
      world.blocks[i] = {version, SharedBuffer(std::move(sum.total))};
      result.source[i] = kComputed;
    } else if (sum.single) {
      world.blocks[i] = {version, std::move(sum.single)};
      result.source[i] = sum.single_node;
    }
  }
  return result;
}

}  // namespace spes::trainer
