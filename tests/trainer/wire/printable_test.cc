#include "trainer/wire/printable.h"

#include <gtest/gtest.h>

namespace spes::trainer {
namespace {

TEST(Printable, KeepsWhatCanBeRead) {
  for (const std::string text : {"", "plain text, 100 %", "Grüße – ✓ 模型 🙂", "\xC2\xA0",
                                 "\xF4\x8F\xBF\xBF", "\xED\x9F\xBF", "\xE0\xA0\x80"}) {
    EXPECT_EQ(Printable(text), text);
  }
}

TEST(Printable, ReplacesWhatActsOnATerminalOrALog) {
  EXPECT_EQ(Printable("a\nb\tc\r\x1b[31m\x7f"), "a?b?c??[31m?");
  EXPECT_EQ(Printable(std::string("a\0b", 3)), "a?b");
  EXPECT_EQ(Printable("\xC2\x9B"
                      "1m"),
            "??1m");  // a control character of two bytes
  EXPECT_EQ(Printable("\xE2\x80\xA8"
                      "x"),
            "???x");  // line separator
  EXPECT_EQ(Printable("\xE2\x80\xAE"
                      "x"),
            "???x");  // right to left
  EXPECT_EQ(Printable("\xE2\x81\xA6"
                      "x"),
            "???x");  // isolate
}

TEST(Printable, ReplacesWhatIsNoUtf8ByteForByte) {
  EXPECT_EQ(Printable("\x80"
                      "a"),
            "?a");                    // no lead
  EXPECT_EQ(Printable("\xC3"), "?");  // cut short
  EXPECT_EQ(Printable("\xC3"
                      "a"),
            "?a");
  EXPECT_EQ(Printable("\xE2\x80"
                      "a"),
            "??a");
  EXPECT_EQ(Printable("\xC1\xBF"), "??");  // longer than need be
  EXPECT_EQ(Printable("\xE0\x9F\xBF"), "???");
  EXPECT_EQ(Printable("\xF0\x8F\xBF\xBF"), "????");
  EXPECT_EQ(Printable("\xED\xA0\x80"), "???");       // half of a pair
  EXPECT_EQ(Printable("\xF4\x90\x80\x80"), "????");  // beyond Unicode
  EXPECT_EQ(Printable("\xF8\x88\x80\x80\x80"), "?????");
  EXPECT_EQ(Printable("\xFF\xFE"), "??");
}

}  // namespace
}  // namespace spes::trainer
