#include "collimate/base/json.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/support/base/error_of.h"

namespace collimate::base {
namespace {

using testing::StartsWith;

std::string nested(int levels) { return std::string(levels, '[') + std::string(levels, ']'); }

std::string json_error(const std::string& text, int64_t first_line = 0) {
  return message_of([&] { parse_json(text, "a.json", first_line); });
}

TEST(Json, ReadsWhatIsNotTooDeep) {
  EXPECT_EQ(parse_json(R"({"a": [1, "]"]})", "a.json").at("a").at(0), 1);
  EXPECT_EQ(parse_json(nested(kMaxJsonDepth), "a.json").size(), 1U);
  EXPECT_EQ(parse_ordered_json(R"({"b": 1, "a": 2})", "a.json").begin().key(), "b");
}

TEST(Json, BracketsInStringsAreNoNesting) {
  const std::string brackets(300, '['), text = R"(\"{\\)" + brackets;
  EXPECT_EQ(parse_json("[\"" + text + "\"]", "a.json").at(0).get<std::string>(), "\"{\\" + brackets);
  std::string wide = "[0";
  for (int i = 0; i < 300; ++i) wide += ",[{}]";
  EXPECT_EQ(parse_json(wide + "]", "a.json").size(), 301U);
}

TEST(Json, DeepTextIsRefused) {
  const std::string message = "[a.json] expected JSON of at most 200 levels, got deeper nesting";
  EXPECT_EQ(json_error(nested(kMaxJsonDepth + 1)), message);
  EXPECT_EQ(json_error(std::string(1000000, '[')), message);
  EXPECT_EQ(json_error("[1,\n" + nested(1000000) + "]", 5),
            "[a.json:6] expected JSON of at most 200 levels, got deeper nesting");
}

TEST(Json, MalformedTextIsRefusedWithItsLine) {
  EXPECT_THAT(json_error("{\"a\": }"), StartsWith("[a.json] expected well-formed JSON, got "));
  EXPECT_THAT(json_error("{\n\"a\": }", 1), StartsWith("[a.json:2] expected well-formed JSON, got "));
  EXPECT_EQ(json_error("[1e999]"), "[a.json] expected well-formed JSON, got a number that is too large");
}

TEST(Json, MalformedTextIsShownInWordsOfItsOwn) {
  const std::string expected = "[a.json:1] expected well-formed JSON, got ";
  EXPECT_EQ(json_error("hello\nyou", 1), expected + "\"hello\" at the beginning");
  EXPECT_EQ(json_error("{\"a\": nope}", 1), expected + "something else at column 8: {\"a\": no");
  EXPECT_EQ(json_error("{\"a\": [1, 2", 1), expected + "a text that ends before its value does");
  EXPECT_EQ(json_error(" \n", 1), "[a.json:2] expected well-formed JSON, got an empty text");
  EXPECT_EQ(
      json_error("{\n\"name\": \"a long value\", 'b': 1}", 1),
      "[a.json:2] expected well-formed JSON, got something else than a name in quotes at column 25: …\": \"a long "
      "value\", '; try double quotes in place of single ones");
  EXPECT_EQ(json_error("{\"prompt\": \"a\", \"completion\" \"b\"}", 1),
            expected + "something else than \":\" at column 32: …a\", \"completion\" \"b\"");
  EXPECT_EQ(json_error("[1 2]", 1), expected + "something else than \",\" or \"]\" at column 4: [1 2");
  EXPECT_EQ(json_error("{\"a\": \"\xff\"}", 1), expected +
                                                    "something else at column 8: {\"a\": \"\xef\xbf\xbd; try UTF-8: "
                                                    "iconv -f LATIN1 -t UTF-8 converts an older file");
  EXPECT_THAT(json_error("{\"a\": \"caf\xe9\"}", 1), testing::HasSubstr("; try UTF-8: iconv"));
  EXPECT_THAT(json_error("{\"a\": 1},", 1), testing::EndsWith("; try no comma at the end"));
  EXPECT_THAT(json_error("{\"a\": 1 , }", 1), testing::EndsWith("; try no comma behind the last one"));
  EXPECT_THAT(json_error("[1, ]", 1), testing::EndsWith("; try no comma behind the last one"));
  EXPECT_THAT(json_error("[NaN]", 1), testing::EndsWith("; try null in place of a number that JSON lacks, as NaN"));
  EXPECT_THAT(json_error("[True]", 1), testing::EndsWith("; try true and false in small letters"));
  EXPECT_THAT(json_error("[\"a\tb\"]", 1), testing::HasSubstr("; try an escape, as \\t or \\n, for a control"));
}

TEST(Json, AKeyTwiceInOneObjectIsRefused) {
  const std::string message = "[a.json:2] expected each key once in an object, got \"b\" again; try one of the two";
  EXPECT_EQ(json_error("{\"b\": {\"b\": [\"b\", {\"b\": 1}]},\n \"b\" : 2}", 1), message);
  EXPECT_EQ(json_error("[{\"b\": 1,\n\"\\u0062\": {}}]", 1), message);
  EXPECT_EQ(json_error(R"({"a\\": 1, "a\\": 2})"),
            "[a.json] expected each key once in an object, got \"a\\\" again; try one of the two");
  std::string many = "{";
  for (int i = 0; i < 100; ++i) many += fmt::format("\"{}\": 1, ", i);
  EXPECT_THAT(json_error(many + "\"7\": 2}"), testing::HasSubstr("got \"7\" again"));
  EXPECT_EQ(parse_json(many + "\"x\": 2}", "a.json").size(), 101U);
  EXPECT_EQ(parse_json(R"([{"a": "a"}, {"a": {"a": "\"a\":"}}])", "a.json").size(), 2U);
  EXPECT_THAT(json_error(R"({"a": 1, "a": })"), testing::HasSubstr("well-formed JSON"));
}

}  // namespace
}  // namespace collimate::base
