#include "trainer/model/published_tensors.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "trainer/model/autograd.h"
#include "trainer/model/block_tensor.h"

namespace spes::trainer {
namespace {

const BlockSpec kMatrix = MakeBlock(DType::kFloat32, BlockKind::kShared, 0, -1, {{"q", {3, 5}}});
const BlockSpec kExpert = MakeBlock(DType::kFloat32, BlockKind::kExpert, 0, 0,
                                    {{"w1", {3, 5}}, {"v1", {3, 5}}, {"w2", {3, 5}}});

SharedBuffer Value(const BlockSpec& spec, float first) {
  Buffer buffer(spec.buffer_elements * 4);
  for (float& x : buffer.as<float>()) x = first++;
  // Not std::make_shared, whose memory is not used again while somebody remembers the value.
  return SharedBuffer(new Buffer(std::move(buffer)));
}

at::Tensor Get(PublishedTensors& tensors, const BlockSpec& spec, const SharedBuffer& value,
               at::ScalarType type) {
  return tensors.Get(spec, DType::kFloat32, value, at::kCPU, type);
}

TEST(PublishedTensors, OfTheHostAreTheValuesThemselves) {
  PublishedTensors tensors;
  const SharedBuffer value = Value(kMatrix, 1);
  const at::Tensor tensor = Get(tensors, kMatrix, value, at::kFloat);
  EXPECT_EQ(tensor.const_data_ptr(), value->data());
  EXPECT_EQ(tensor.sizes(), (std::vector<std::int64_t>{3, 5}));
  EXPECT_EQ(value.use_count(), 1);
}

TEST(PublishedTensors, AreConvertedOnceForAllWhoHoldThem) {
  PublishedTensors tensors;
  for (const BlockSpec& spec : {kMatrix, kExpert}) {
    const SharedBuffer value = Value(spec, 1), other = Value(spec, 2);
    const at::Tensor expected = BlockTensor(spec, DType::kFloat32, value).to(at::kBFloat16);
    at::Tensor a = Get(tensors, spec, value, at::kBFloat16);
    const at::Tensor b = Get(tensors, spec, value, at::kBFloat16);
    EXPECT_EQ(a.const_data_ptr(), b.const_data_ptr());
    EXPECT_TRUE(a.equal(expected));
    EXPECT_TRUE(b.equal(expected));
    EXPECT_EQ(b.strides(), expected.strides());
    EXPECT_NE(Get(tensors, spec, other, at::kBFloat16).const_data_ptr(), a.const_data_ptr());
    EXPECT_NE(Get(tensors, spec, value, at::kHalf).const_data_ptr(), a.const_data_ptr());
    // Who wants gradients wants them alone.
    a = b.detach().requires_grad_();
    EXPECT_FALSE(Get(tensors, spec, value, at::kBFloat16).requires_grad());
    EXPECT_EQ(Get(tensors, spec, value, at::kBFloat16).const_data_ptr(), b.const_data_ptr());
  }
}

TEST(PublishedTensors, OfAValueThatIsGoneAreNotThoseOfTheNextInItsPlace) {
  PublishedTensors tensors;
  std::vector<at::Tensor> held;
  for (int i = 0; i < 600; ++i) {  // the allocator gives the same memory again and again
    const SharedBuffer value = Value(kMatrix, static_cast<float>(i));
    held.push_back(Get(tensors, kMatrix, value, at::kBFloat16));
    EXPECT_TRUE(held.back().equal(BlockTensor(kMatrix, DType::kFloat32, value).to(at::kBFloat16)));
  }
}

}  // namespace
}  // namespace spes::trainer
