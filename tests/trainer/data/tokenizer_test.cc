#include "trainer/data/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sentencepiece_processor.h>

#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/trainer/data/temporary_folder.h"

namespace spes::trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A SentencePiece model written by hand as the protocol buffer that it is, so that the test needs
// no training tool: field 1 of the model is a piece {1: text, 2: score as float, 3: type}, field 3
// the normaliser {3: add a space in front, 4: remove extra spaces, 5: spaces become U+2581}.
void Varint(std::uint64_t value, std::string& out) {
  for (; value >= 128; value >>= 7) out += static_cast<char>(value | 128);
  out += static_cast<char>(value);
}

void Field(int number, const std::string& bytes, std::string& out) {
  out += static_cast<char>(number << 3 | 2);
  Varint(bytes.size(), out);
  out += bytes;
}

std::string TinyModel(const std::vector<std::string>& pieces) {
  enum { kNormal = 1, kUnknown = 2, kControl = 3 };
  std::string model;
  const auto piece = [&model](const std::string& text, float score, int type) {
    std::string body, number(4, '\0');
    Field(1, text, body);
    std::memcpy(number.data(), &score, 4);
    body += "\x15" + number + "\x18" + static_cast<char>(type);
    Field(1, body, model);
  };
  piece("<unk>", 0, kUnknown);
  piece("<s>", 0, kControl);
  piece("</s>", 0, kControl);
  for (const auto& text : pieces) piece(text, text.size() > 1 ? -1.f : -3.f, kNormal);
  Field(3, std::string("\x18\x00\x20\x00\x28\x01", 6), model);
  return model;
}

std::vector<std::int32_t> Ids(const Tokenizer& tokenizer, const std::string& text) {
  const auto tokens = tokenizer.Encode(text);
  std::vector<std::int32_t> ids(static_cast<std::size_t>(tokens->size()));
  tokens->Read(0, tokens->size(), ids.data());
  return ids;
}

TEST(Tokenizer, BytesAreTheirOwnIds) {
  const auto bytes = MakeTokenizer(TokenizerKind::kBytes, "");
  EXPECT_EQ(bytes->vocabulary(), 256);
  EXPECT_THAT(Ids(*bytes, std::string("aZ\x00\x7f\x80\xff\n", 7)),
              ElementsAre(97, 90, 0, 127, 128, 255, 10));
}

TEST(Tokenizer, SentencePieceUsesTheModelsPieces) {
  const TemporaryFolder folder;
  const auto model =
      MakeTokenizer(TokenizerKind::kSentencePiece,
                    folder.Write("m", TinyModel({"a", "b", "ab", "\xe2\x96\x81", "\n",
                                                 "\xe2\x96\x81"
                                                 "ab"})));
  EXPECT_EQ(model->vocabulary(), 9);
  EXPECT_THAT(Ids(*model, "abab ab\nb"), ElementsAre(5, 5, 8, 7, 4));
  EXPECT_THAT(Ids(*model, "aza"), ElementsAre(3, 0, 3));  // <unk>
}

// A long text is cut into pieces at line ends: the same ids as from one call of the library.
TEST(Tokenizer, LongTextsAreEncodedAsAWhole) {
  const TemporaryFolder folder;
  const std::string serialized = TinyModel({"a", "b", "ab", "\xe2\x96\x81", "\n",
                                            "\xe2\x96\x81"
                                            "ab",
                                            "ba"});
  const auto model = MakeTokenizer(TokenizerKind::kSentencePiece, folder.Write("m", serialized));
  std::string text;
  for (int i = 0; text.size() < 300000; ++i) {
    text += i % 3 ? "ab" : "b ";
    if (i * 7919 % 101 == 0) text += "a\n";
  }
  sentencepiece::SentencePieceProcessor whole;
  ASSERT_TRUE(whole.LoadFromSerializedProto(serialized).ok());
  std::vector<int> expected;
  ASSERT_TRUE(whole.Encode(text, &expected).ok());
  EXPECT_EQ(Ids(*model, text), expected);

  // Without a line end anywhere characters stay whole: é is unknown, once each.
  std::string accents = "a";
  for (int i = 0; i < 100000; ++i)
    accents +=
        "\xc3\xa9"
        "b";
  const auto ids = Ids(*model, accents);
  EXPECT_EQ(ids.size(), 200001u);
}

TEST(Tokenizer, NamesAModelThatCannotBeRead) {
  const TemporaryFolder folder;
  const auto message = [](const std::string& path) {
    return MessageOf<std::invalid_argument>(
        [&] { MakeTokenizer(TokenizerKind::kSentencePiece, path); });
  };
  EXPECT_THAT(message(folder.Path("absent")), HasSubstr("absent: the tokenizer model cannot"));
  EXPECT_THAT(message(folder.Write("empty", "")), HasSubstr("empty"));
  EXPECT_THAT(message(folder.Write("text", "this is no model")), HasSubstr("SentencePiece"));
}

}  // namespace
}  // namespace spes::trainer
