#include "trainer/runtime/tcp/upload_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>
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

// Whether a file of this process is mapped there.
bool IsInFile(const char* at) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0, end = 0;
    long inode = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx %*s %*s %*s %ld", &begin, &end, &inode) != 3) continue;
    const auto place = reinterpret_cast<std::uintptr_t>(at);
    if (place >= begin && place < end) return inode != 0;
  }
  return false;
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

TEST(UploadMemory, WhatIsDecodedHasOrdinaryMemoryWhereTheDiskIsFull) {
  UploadMemory memory(0, testing::TempDir() + "spes-decoded");
  const Allocate roomy = memory.ForDecoding();
  const Buffer spooled = roomy(kBytes);
  EXPECT_EQ(memory.in_files(), 1);
  const SmallFiles small(1 << 20);
  const Buffer buffer = memory.ForDecoding()(kBytes);
  EXPECT_EQ(buffer.bytes(), kBytes);
  EXPECT_TRUE(IsZero(buffer));
}

TEST(UploadMemory, CodesOfUploadsBeyondTheLimitLieInFilesToo) {
  const auto table = TableOf(1, 1'000'000);
  auto config = TestServer::Config(1);
  config.options.uploads_in_memory = 0;
  config.options.spool = testing::TempDir() + "spes-codes";
  std::vector<SharedCode> codes;
  TestServer server(config, table);
  TestNode node(TestNode::Config(server.address(), 0), table);
  Offer offer = OfferOf(*table, 1, 1);
  const std::string text(2'000'000, 'c');
  offer.blocks.resize(1);
  offer.blocks[0].code = MakeCode(text);
  node.Send(kCoordinator, offer);
  ASSERT_TRUE(server.UntilGot(1));
  const SharedCode code = std::get<Offer>(server.got[0].second).blocks.at(0).code;
  ASSERT_TRUE(code);
  EXPECT_TRUE(*code == text);
  EXPECT_TRUE(IsInFile(code->data()));
}

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
