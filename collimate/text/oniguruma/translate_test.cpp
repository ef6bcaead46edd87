#include "collimate/text/oniguruma/translate.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>

#include "collimate/text/normalizer.h"
#include "collimate/text/pre_tokenizer.h"
#include "tests/support/text/written_files.h"

namespace collimate::text {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// The cases in the repository (make_patterns.py), or those that COLLIMATE_PATTERN_CASES names.
json pattern_cases() { return json::parse(std::ifstream(golden_file("patterns.json", "COLLIMATE_PATTERN_CASES"))); }

std::vector<std::string> parts_of(const json& pattern, const std::string& text, const char* behavior, bool invert) {
  const PreTokenizer split = parse_pre_tokenizer(
      {{"type", "Split"}, {"pattern", pattern}, {"behavior", behavior}, {"invert", invert}}, "test");
  Pieces pieces{.text = text};
  split.split(pieces, {});
  std::vector<std::string> parts;
  for (const Span& span : pieces.words) parts.push_back(pieces.text.substr(span.begin, span.size()));
  return parts;
}

std::string joined(const std::vector<std::string>& parts) {
  std::string out;
  for (const std::string& part : parts) out += part;
  return out;
}

// Compares what the pattern does to a text with what it does in tokenizers.
void expect_equal(const json& one, const json& pattern, const std::string& sample) {
  if (!one.contains("text")) {
    EXPECT_EQ(joined(parts_of(pattern, sample, "Removed", true)), one.at("matches").get<std::string>());
    return;
  }
  std::string text = one.at("text");
  EXPECT_EQ(json(parts_of(pattern, text, "Isolated", false)), one.at("isolated")) << text;
  EXPECT_EQ(json(parts_of(pattern, text, "Removed", true)), one.at("matches")) << text;
  replace_step({{"pattern", pattern}, {"content", "<>"}}, "test")(text, {});
  EXPECT_EQ(text, one.at("replaced").get<std::string>());
}

TEST(Oniguruma, PatternsMatchWhereTheyDoInTokenizers) {
  const json all = pattern_cases();
  size_t refused = 0;
  for (const json& one : all.at("cases")) {
    const json pattern = {{"Regex", one.at("pattern")}};
    SCOPED_TRACE(one.at("pattern").get<std::string>());
    try {
      parse_pre_tokenizer({{"type", "Split"}, {"pattern", pattern}, {"behavior", "Isolated"}, {"invert", false}}, "");
    } catch (const base::InputError& error) {
      ++refused;
      EXPECT_TRUE(std::getenv("COLLIMATE_PATTERN_CASES") || one.contains("refused")) << error.what();
      continue;
    }
    if (one.contains("refused")) {
      ADD_FAILURE() << "read, where a refusal is expected";
    } else {
      expect_equal(one, pattern, all.at("sample"));
    }
  }
  RecordProperty("refused", static_cast<int>(refused));
}

TEST(Oniguruma, ErrorsNameTheFileAndWhatIsNotRead) {
  const auto error = [](const std::string& pattern) {
    return message_of<base::InputError>([&] { oniguruma::translated(pattern, "a/tokenizer.json"); });
  };
  EXPECT_THAT(error("[a-[b]]"),
              HasSubstr("[a/tokenizer.json] expected a pattern without ranges that end in a class "
                        "(-[), got [a-[b]], at the end of '[a-'; try \\-, or the model's tiktoken.model alone"));
  EXPECT_THAT(error("(?~ab)"), HasSubstr("a pattern without (?~, got (?~ab)"));
  EXPECT_THAT(error("é\\Xb"),
              HasSubstr("a pattern without \\X, \\y and \\Y, got é\\Xb, at the end of 'é\\X'; try \\P{M}"));
  EXPECT_THAT(error("\\p{Nonsense}"), HasSubstr("a pattern without the property 'Nonsense'"));
  EXPECT_THAT(error("a)b"), HasSubstr("a pattern without a ) that closes nothing"));
  EXPECT_THAT(error("(a"), HasSubstr("a pattern without a ( that nothing closes"));
  EXPECT_THAT(error("[a"), HasSubstr("a pattern without an end in the middle"));
  EXPECT_THAT(error("*a"), HasSubstr("a pattern without '*' behind nothing"));
  EXPECT_THAT(error("a\\"), HasSubstr("a pattern without an end in the middle"));
  EXPECT_THAT(error(std::string(100'000, '(')), HasSubstr("more than 200 groups inside of each other"));
  EXPECT_THAT(error(std::string(100'000, '[')), HasSubstr("more than 100 classes inside of each other"));
}

}  // namespace
}  // namespace collimate::text
