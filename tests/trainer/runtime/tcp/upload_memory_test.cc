#include "trainer/runtime/tcp/upload_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

namespace spes::trainer {
namespace {

constexpr std::int64_t kBytes = 3 << 20;

bool IsZero(const Buffer& buffer) {
  return std::all_of(buffer.data(), buffer.data() + buffer.bytes(),
                     [](std::byte b) { return b == std::byte{0}; });
}

TEST(UploadMemory, WhatOneUploadHasLetGoOfServesTheNextAndIsZeroAgain) {
  UploadMemory memory(2, "");
  const std::byte* first = nullptr;
  {
    Buffer buffer = memory.ForUpload()(kBytes);
    EXPECT_TRUE(IsZero(buffer));
    first = buffer.data();
    std::memset(buffer.data(), 7, kBytes);
  }
  const Buffer again = memory.ForUpload()(kBytes);
  EXPECT_EQ(again.data(), first);
  EXPECT_TRUE(IsZero(again));
}

TEST(UploadMemory, WhatIsInUseIsNotGivenAwayTwice) {
  UploadMemory memory(4, "");
  std::vector<Buffer> held;
  for (int i = 0; i < 3; ++i) held.push_back(memory.ForUpload()(kBytes));
  EXPECT_EQ(memory.in_memory(), 3);
  held.pop_back();
  EXPECT_EQ(memory.in_memory(), 2);
  held.push_back(memory.ForUpload()(kBytes));
  EXPECT_NE(held[0].data(), held[2].data());
  EXPECT_NE(held[1].data(), held[2].data());
}

TEST(UploadMemory, BuffersMayOutliveIt) {
  std::optional<Buffer> buffer;
  {
    UploadMemory memory(1, "");
    buffer.emplace(memory.ForUpload()(kBytes));
  }
  std::memset(buffer->data(), 1, kBytes);
}

TEST(UploadMemory, ThoseBeyondTheLimitGoToFilesWhileOthersAreHeld) {
  UploadMemory memory(1, testing::TempDir() + "spes-uploads");
  const Buffer first = memory.ForUpload()(kBytes);
  Buffer second = memory.ForUpload()(kBytes);
  EXPECT_EQ(memory.in_memory(), 1);
  EXPECT_EQ(memory.in_files(), 1);
  std::memset(second.data(), 5, kBytes);
  memory.Trim();
  EXPECT_EQ(second.data()[kBytes - 1], std::byte{5});
}

}  // namespace
}  // namespace spes::trainer
