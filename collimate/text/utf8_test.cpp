#include "collimate/text/utf8.h"

#include <gtest/gtest.h>

namespace collimate::text {
namespace {

TEST(Utf8, EveryCodePointSurvives) {
  for (uint32_t code_point = 0; code_point <= 0x10FFFF; ++code_point) {
    std::string text;
    append_utf8(text, code_point);
    const bool surrogate = code_point >= 0xD800 && code_point <= 0xDFFF;
    ASSERT_EQ(utf8_length(text), surrogate ? 0 : text.size()) << code_point;
    ASSERT_TRUE(surrogate || utf8_code_point(text) == code_point);
    for (size_t cut = 1; cut < text.size() && !surrogate; ++cut) {
      ASSERT_TRUE(utf8_unfinished(text.substr(0, cut))) << code_point;
      ASSERT_EQ(utf8_length(text.substr(0, cut)), 0u);
    }
  }
}

TEST(Utf8, RefusesWhatIsNotWellFormed) {
  for (const char* text : {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF",
                           "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\xC3("}) {
    EXPECT_EQ(utf8_length(text), 0u) << text;
    EXPECT_FALSE(utf8_unfinished(text)) << text;
    EXPECT_FALSE(is_valid_utf8(text)) << text;
  }
}

TEST(Utf8, ReplacesOnlyBrokenBytes) {
  EXPECT_EQ(valid_utf8("a\xFF"
                       "b\xE4\xBD"),
            "a\uFFFDb\uFFFD\uFFFD");
  EXPECT_EQ(valid_utf8("plain ascii, 你好 🦙"), "plain ascii, 你好 🦙");
  EXPECT_EQ(valid_run("12345678\xC3"), 8u);
}

}  // namespace
}  // namespace collimate::text
