#include "trainer/data/text_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <stdexcept>
#include <string>

#include "tests/trainer/data/temporary_folder.h"

namespace spes::trainer {
namespace {

using testing::HasSubstr;

std::string Gzip(const std::string& text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

// Not compressible to nothing, so that cutting the gzip file cuts the text.
std::string Words(int n) {
  std::string text;
  for (int i = 0; i < n; ++i) text += std::to_string(i * 7919LL % 100003) + (i % 9 ? " " : "\n");
  return text;
}

TEST(ReadText, JoinsPlainAndGzipFilesByContentNotName) {
  const TemporaryFolder folder;
  const std::string a = folder.Write("a.gz", "plain, in spite of its name\n");
  const std::string b = folder.Write("b.txt", Gzip("packed\n"));
  const std::string two_members = folder.Write("c.dict.dz", Gzip("one ") + Gzip("two\n"));
  EXPECT_EQ(ReadText({a, b, two_members}), "plain, in spite of its name\npacked\none two\n");
}

TEST(ReadText, KeepsEveryByteOfALargeFile) {
  const TemporaryFolder folder;
  std::string text = Words(600000);  // several times the first buffer
  text[7] = '\0';
  text[8] = '\xff';
  EXPECT_EQ(ReadText({folder.Write("a", text)}), text);
  EXPECT_EQ(ReadText({folder.Write("b", Gzip(text))}), text);
}

TEST(ReadText, StopsAtTheLimitAcrossFiles) {
  const TemporaryFolder folder;
  const std::string a = folder.Write("a", "0123456789"), b = folder.Write("b", Gzip("abcdef"));
  EXPECT_EQ(ReadText({a, b}, 4), "0123");
  EXPECT_EQ(ReadText({a, b}, 10), "0123456789");
  EXPECT_EQ(ReadText({a, b}, 12), "0123456789ab");
  EXPECT_EQ(ReadText({a, b}, 99), "0123456789abcdef");
  // What lies beyond the limit is not looked at.
  EXPECT_EQ(ReadText({a, folder.Path("absent")}, 10), "0123456789");
}

TEST(ReadText, NamesTheFileThatCannotBeRead) {
  const TemporaryFolder folder;
  const auto message = [](const std::string& path) {
    return MessageOf<std::invalid_argument>([&] { ReadText({path}); });
  };
  const std::string text = Words(60000), packed = Gzip(text);
  const auto expect = [&](const std::string& path, const std::string& why) {
    EXPECT_THAT(message(path), testing::AllOf(HasSubstr(path), HasSubstr(why)));
  };
  expect(folder.Path("absent"), "No such file");
  expect(folder.Path(""), "is a folder");
  expect(folder.Write("empty", ""), "is empty");
  expect(folder.Write("empty.gz", Gzip("")), "is empty");
  expect(folder.Write("cut.gz", packed.substr(0, packed.size() / 2)), "cut short");
  expect(folder.Write("no_trailer.gz", packed.substr(0, packed.size() - 3)), "cut short");
  std::string flipped = packed;
  flipped[packed.size() - 6] ^= 1;  // in the checksum
  expect(folder.Write("flipped.gz", flipped), "damaged");
}

}  // namespace
}  // namespace spes::trainer
