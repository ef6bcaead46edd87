#include "collimate/text/regex.h"

#include <gmock/gmock.h>

#include "collimate/text/file_regex.h"
#include "collimate/text/pre_tokenizer.h"
#include "tests/support/text/written_files.h"

namespace collimate::text {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> words_of(const nlohmann::json& component, const std::string& text) {
  const PreTokenizer pre_tokenizer = parse_pre_tokenizer(component, "test");
  Pieces pieces{.text = text};
  pre_tokenizer.split(pieces, {});
  std::vector<std::string> words;
  for (const Span& span : pieces.words) words.push_back(pieces.text.substr(span.begin, span.size()));
  return words;
}

nlohmann::json split(const std::string& kind, const std::string& pattern, const std::string& behavior,
                     bool invert = false) {
  return {{"type", "Split"}, {"pattern", {{kind, pattern}}}, {"behavior", behavior}, {"invert", invert}};
}

TEST(Regex, SpacesAreThoseOfUnicode) {
  // U+180E is white space to PCRE2 alone; U+00A0 and U+3000 are to everyone.
  EXPECT_THAT(words_of(split("Regex", "\\s+", "Isolated"), "a\u180e\u00a0\u3000b"),
              ElementsAre("a\u180e", "\u00a0\u3000", "b"));
  EXPECT_THAT(words_of(split("Regex", "[^\\s]+", "Isolated"), "a\u180e b"), ElementsAre("a\u180e", " ", "b"));
  EXPECT_THAT(words_of(split("Regex", "\\S+", "Removed"), "a\u180e b"), ElementsAre(" "));
}

TEST(Regex, SpacesAreSpelledOutBehindWhatDoesNotEndASet) {
  Span match;
  for (const char* pattern : {"^[[:digit:]\\s]+$", "^[]\\s7]+$", "^[^\\S\\D]*[7\\s]+$", "^[\\S ]+$"})
    EXPECT_TRUE(Regex(pattern).find("7 7", 0, match)) << pattern;
  EXPECT_FALSE(Regex("[^]\\s7]").find("7 ]", 0, match));
  EXPECT_TRUE(Regex("[^]\\s7]").find("7 x", 0, match));
}

TEST(FileRegex, ErrorsNameTheFile) {
  EXPECT_THAT(message_of<base::InputError>([] {
                read_file_regex({{"Regex", "(?<=a+)b"}}, "a/tokenizer.json");
              }),
              HasSubstr("[a/tokenizer.json] expected a pattern that PCRE2 compiles, got '(?<=a+)b' (lookbehind "
                        "assertion is not fixed length, at '(?<=a+)b')"));
  EXPECT_THAT(Regex::problem("x(?<!a+)b"), HasSubstr("not fixed length, at '(?<!a+)b'"));
  EXPECT_THAT(Regex::problem("x(b"), HasSubstr("missing closing parenthesis, at its end"));
}

// A pattern that backtracks without end, or once for every character, is an error and not the end of the program.
TEST(Regex, GivesUpOnStepsAndOnMemory) {
  const auto error = [](const std::string& pattern, size_t size) {
    Span match;
    return message_of<base::RunError>([&] { Regex(pattern).find(std::string(size, 'y') + "<", 0, match); });
  };
  EXPECT_EQ(error("(y|yy)+[zq]", 1000), "[regex] '(y|yy)+[zq]' gave up on a text of 1001 bytes: match limit exceeded");
  EXPECT_THAT(error("^(.|x)*z?<", 1'000'000), HasSubstr(" gave up on a text of 1000001 bytes: "));
}

TEST(Regex, ErrorsNameThePattern) {
  EXPECT_THAT(message_of<base::InputError>([] { Regex broken("a(b"); }), HasSubstr("'a(b'"));
}

TEST(Regex, EscapedTextMatchesItself) {
  const std::string text = "a.b*c+(d)[e]{f}|^$?\\-#/";
  Span match;
  ASSERT_TRUE(Regex(regex_escape(text)).find("x" + text, 0, match));
  EXPECT_EQ(match.begin, 1u);
  EXPECT_EQ(match.size(), text.size());
}

// The five behaviors as Hugging Face documents them, on "the-final--countdown".
TEST(PreTokenizer, SplitBehaviors) {
  const std::string text = "the-final--countdown";
  EXPECT_THAT(words_of(split("String", "-", "Removed"), text), ElementsAre("the", "final", "countdown"));
  EXPECT_THAT(words_of(split("String", "-", "Isolated"), text),
              ElementsAre("the", "-", "final", "-", "-", "countdown"));
  EXPECT_THAT(words_of(split("String", "-", "MergedWithPrevious"), text),
              ElementsAre("the-", "final-", "-", "countdown"));
  EXPECT_THAT(words_of(split("String", "-", "MergedWithNext"), text), ElementsAre("the", "-final", "-", "-countdown"));
  EXPECT_THAT(words_of(split("String", "-", "Contiguous"), text), ElementsAre("the", "-", "final", "--", "countdown"));
  EXPECT_THAT(words_of(split("Regex", "[a-z]+", "Removed", true), text), ElementsAre("the", "final", "countdown"));
}

TEST(PreTokenizer, Gpt2WordsDigitsAndMetaspace) {
  EXPECT_THAT(words_of({{"type", "ByteLevel"}, {"add_prefix_space", true}}, "it's  12é\n"),
              ElementsAre(" it", "'s", " ", " 12", "é", "\n"));
  EXPECT_THAT(words_of({{"type", "Digits"}, {"individual_digits", true}}, "a12"), ElementsAre("a", "1", "2"));
  EXPECT_THAT(words_of({{"type", "Digits"}, {"individual_digits", false}}, "a12"), ElementsAre("a", "12"));
  EXPECT_THAT(words_of({{"type", "Metaspace"}}, "a  b"), ElementsAre("▁a", "▁", "▁b"));
  EXPECT_THAT(words_of({{"type", "Metaspace"}, {"prepend_scheme", "never"}}, "a b"), ElementsAre("a", "▁b"));
}

TEST(PreTokenizer, BrokenBytesAreWordsOfTheirOwn) {
  EXPECT_THAT(words_of(split("Regex", "[a-z]+", "Isolated"),
                       "ab\xFF\xFE"
                       "cd\xE4"),
              ElementsAre("ab", "\xFF", "\xFE", "cd", "\xE4"));
}

// U+00B2 is the bytes C2 B2, the second of which GPT-2 spells as U+00B2: a digit to what comes after ByteLevel.
TEST(PreTokenizer, WhatComesAfterByteLevelSeesSpelledBytes) {
  const nlohmann::json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}};
  EXPECT_THAT(words_of({{"type", "Sequence"}, {"pretokenizers", {bytes, {{"type", "Digits"}}}}}, "a1 2\u00b2"),
              ElementsAre("a", "1", "\u0120", "2", "\u00c2", "\u00b2"));
}

// A text that is removed keeps its place: what stands behind it is not the first of the text.
TEST(PreTokenizer, MetaspaceBehindASplit) {
  const auto words = [](const char* scheme, const std::string& text) {
    return words_of(
        {{"type", "Sequence"},
         {"pretokenizers", {{{"type", "WhitespaceSplit"}}, {{"type", "Metaspace"}, {"prepend_scheme", scheme}}}}},
        text);
  };
  EXPECT_THAT(words("always", " a b"), ElementsAre("\u2581a", "\u2581b"));
  EXPECT_THAT(words("first", "a b"), ElementsAre("\u2581a", "b"));
  EXPECT_THAT(words("first", " a b"), ElementsAre("a", "b"));
}

}  // namespace
}  // namespace collimate::text
