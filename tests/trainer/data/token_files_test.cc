#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/trainer/data/temporary_folder.h"
#include "trainer/data/token_array.h"

namespace spes::trainer {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

template <class T>
std::string Raw(const std::vector<T>& ids) {
  return {reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(T)};
}

std::vector<std::int32_t> Get(const TokenArray& tokens, std::int64_t first, std::int64_t count) {
  std::vector<std::int32_t> out(static_cast<std::size_t>(count));
  tokens.Read(first, count, out.data());
  return out;
}

TEST(TokenFiles, ReadsLittleEndianUint16AndUint32) {
  const TemporaryFolder folder;
  const std::string bytes{'\x01', '\x00', '\x02', '\x01', '\xff', '\xff', '\x00', '\x00'};
  const std::string path = folder.Write("a", bytes);
  const auto narrow = OpenTokenFiles({path}, TokenType::kUint16, 65536);
  EXPECT_THAT(Get(*narrow, 0, 4), ElementsAre(1, 0x102, 0xffff, 0));
  const auto wide = OpenTokenFiles({path}, TokenType::kUint32, 0x1020002);
  EXPECT_THAT(Get(*wide, 0, 2), ElementsAre(0x1020001, 0xffff));
}

TEST(TokenFiles, SeveralFilesAreOneArray) {
  const TemporaryFolder folder;
  const std::vector<std::string> files = {folder.Write("a", Raw<std::uint16_t>({0, 1, 2})),
                                          folder.Write("b", Raw<std::uint16_t>({3})),
                                          folder.Write("c", Raw<std::uint16_t>({4, 5, 6, 7}))};
  const auto tokens = OpenTokenFiles(files, TokenType::kUint16, 8);
  ASSERT_EQ(tokens->size(), 8);
  for (int first = 0; first <= 8; ++first) {
    for (int count = 0; first + count <= 8; ++count) {
      const auto ids = Get(*tokens, first, count);
      for (int i = 0; i < count; ++i) EXPECT_EQ(ids[static_cast<std::size_t>(i)], first + i);
    }
  }
}

TEST(TokenFiles, TakesOnlyTheLimit) {
  const TemporaryFolder folder;
  const std::string a = folder.Write("a", Raw<std::uint32_t>({0, 1, 2}));
  const std::string b = folder.Write("b", Raw<std::uint32_t>({3, 4}));
  EXPECT_EQ(OpenTokenFiles({a, b}, TokenType::kUint32, 9, 2)->size(), 2);
  EXPECT_THAT(Get(*OpenTokenFiles({a, b}, TokenType::kUint32, 9, 4), 2, 2), ElementsAre(2, 3));
  EXPECT_EQ(OpenTokenFiles({a, b}, TokenType::kUint32, 9, 99)->size(), 5);
}

// Far more than this test may use; sparse, so that it takes no room on the disk either.
TEST(TokenFiles, OpensAFileLargerThanMemory) {
  const TemporaryFolder folder;
  const std::string path = folder.Write("large", Raw<std::uint32_t>({7}));
  std::filesystem::resize_file(path, std::uintmax_t{1} << 40);
  const auto tokens = OpenTokenFiles({path}, TokenType::kUint32, 8);
  EXPECT_EQ(tokens->size(), std::int64_t{1} << 38);
  EXPECT_THAT(Get(*tokens, 0, 2), ElementsAre(7, 0));
  EXPECT_THAT(Get(*tokens, (std::int64_t{1} << 38) - 1, 1), ElementsAre(0));
}

TEST(TokenFiles, RefusesWhatIsNoTokenFile) {
  const TemporaryFolder folder;
  const auto expect = [&](const std::string& path, TokenType type, const std::string& why) {
    EXPECT_THAT(MessageOf<std::invalid_argument>([&] { OpenTokenFiles({path}, type, 100); }),
                AllOf(HasSubstr(path), HasSubstr(why)));
  };
  expect(folder.Path("absent"), TokenType::kUint16, "No such file");
  expect(folder.Path(""), TokenType::kUint16, "not a file");
  expect(folder.Write("empty", ""), TokenType::kUint16, "empty");
  expect(folder.Write("odd", "abc"), TokenType::kUint16, "3 bytes are no multiple of the 2");
  expect(folder.Write("six", "abcdef"), TokenType::kUint32, "6 bytes are no multiple of the 4");
  expect(folder.Write("a.npy", "\x93NUMPY v1.0 etc."), TokenType::kUint16, "NumPy header");
  expect(folder.Write("beyond", Raw<std::uint16_t>({1, 99, 100})), TokenType::kUint16,
         "token 2 is 100, beyond the model's vocabulary of 100");
  expect(folder.Write("huge", Raw<std::uint32_t>({0xffffffff})), TokenType::kUint32,
         "token 0 is 4294967295");
}

TEST(TokenFiles, SaysSoWhenTheDataChangesWhileItIsUsed) {
  const TemporaryFolder folder;
  std::vector<std::uint16_t> ids(300000, 1);
  ids[150000] = 7;  // neither among the first nor the last that are looked at when opened
  const std::string path = folder.Write("a", Raw(ids));
  const auto tokens = OpenTokenFiles({path}, TokenType::kUint16, 5);
  EXPECT_THAT(MessageOf<std::runtime_error>([&] { Get(*tokens, 149990, 20); }),
              HasSubstr("token 150000 is 7"));
  std::filesystem::resize_file(path, 1000);
  EXPECT_THAT(MessageOf<std::runtime_error>([&] { Get(*tokens, 490, 20); }), HasSubstr("shorter"));
  std::filesystem::remove(path);
  EXPECT_THAT(MessageOf<std::runtime_error>([&] { Get(*tokens, 0, 1); }), HasSubstr("No such"));
}

}  // namespace
}  // namespace spes::trainer
