#include "trainer/runtime/tcp/upload_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <optional>
#include <vector>

#include "tests/trainer/runtime/tcp/endpoint.h"
#include "tests/trainer/runtime/tcp/payloads.h"

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

// Files of this process may not grow beyond `bytes`.
class SmallFiles {
 public:
  explicit SmallFiles(rlim_t bytes) : old_action_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit small{bytes, old_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
  }
  ~SmallFiles() {
    setrlimit(RLIMIT_FSIZE, &old_);
    std::signal(SIGXFSZ, old_action_);
  }

 private:
  rlimit old_;
  void (*old_action_)(int);
};

TEST(UploadMemory, AFullDiskIsTheEndOfTheUploadsSessionAndTheOthersGoOn) {
  const auto table = TableOf(1, 1'000'000);
  auto config = TestServer::Config(2);
  config.options.uploads_in_memory = 0;
  config.options.spool = testing::TempDir() + "spes-full";
  TestServer server(config, table);
  TestNode node(TestNode::Config(server.address(), 0), table);
  TestNode other(TestNode::Config(server.address(), 1), table);
  {
    const SmallFiles small(1 << 20);
    node.Send(kCoordinator, OfferOf(*table, 1, 1));
    ASSERT_TRUE(server.Until([&] { return server.ended || !server.lost.empty(); }));
    ASSERT_FALSE(server.ended);
    EXPECT_EQ(server.lost[0].first, 0);
    EXPECT_THAT(server.Events("no room"),
                testing::ElementsAre(testing::HasSubstr("File too large")));
    ASSERT_TRUE(server.UntilEvent("refused"));  // for a while
  }
  other.Send(kCoordinator, OfferOf(*table, 1, 1));
  EXPECT_TRUE(server.UntilGot(1));
}

}  // namespace
}  // namespace spes::trainer
