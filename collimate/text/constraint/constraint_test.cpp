#include "collimate/text/constraint/constraint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "collimate/base/philox.h"
#include "collimate/base/read_file.h"
#include "collimate/text/character_tokenizer.h"
#include "tests/support/base/error_of.h"

namespace collimate::text {
namespace {

using testing::HasSubstr;
using Ids = std::vector<int32_t>;

// A tokenizer whose tokens are these bytes, token 0 a special one that ends a text, and so does the one behind the
// last.
class BytesTokenizer : public CharacterTokenizer {
 public:
  explicit BytesTokenizer(std::vector<std::string> pieces)
      : CharacterTokenizer({.specials = {"$"}, .tokens = {"a"}, .bos = "$", .eos = "$", .pad = "$", .unk = "$"}),
        pieces_(std::move(pieces)) {}
  std::string token_bytes(int32_t id, TokenPlace = {}) const override {
    return id == 0 || id == end() ? "" : pieces_.at(static_cast<size_t>(id - 1));
  }
  bool is_special(int32_t id) const override { return id == 0; }
  int32_t vocab_size() const override { return end() + 1; }
  int32_t end() const { return static_cast<int32_t>(pieces_.size()) + 1; }

 private:
  std::vector<std::string> pieces_;
};

std::vector<std::string> all_bytes() {
  std::vector<std::string> bytes;
  for (int byte = 0; byte < 256; ++byte) bytes.emplace_back(1, static_cast<char>(byte));
  return bytes;
}

// A vocabulary with both ends, and a few tokens that the tokenizer does not have.
struct Rules {
  explicit Rules(std::vector<std::string> pieces)
      : tokenizer(std::move(pieces)),
        vocabulary(tokenizer.vocab_size() + 3),
        constrainer(tokenizer, vocabulary, Ids{0, tokenizer.end()}) {}

  auto regex(const std::string& text) { return constrainer.make({TextRule::Kind::kRegex, text}, "regex"); }
  auto schema(const std::string& text) { return constrainer.make({TextRule::Kind::kJsonSchema, text}, "schema"); }
  std::string refusal(TextRule::Kind kind, const std::string& text) {
    return base::message_of([&] { constrainer.make({kind, text}, "rule"); });
  }

  BytesTokenizer tokenizer;
  int64_t vocabulary;
  Constrainer constrainer;
};

Ids ids_of(std::span<const uint32_t> allowed) {
  Ids ids;
  for (size_t id = 0; id < allowed.size() * 32; ++id)
    if ((allowed[id / 32] >> (id % 32) & 1U) != 0) ids.push_back(static_cast<int32_t>(id));
  return ids;
}

bool has(std::span<const uint32_t> allowed, int32_t id) {
  return static_cast<size_t>(id / 32) < allowed.size() && (allowed[id / 32] >> (id % 32) & 1U) != 0;
}

Ids bytes_of(const std::string& text) {
  Ids ids;
  for (const char c : text) ids.push_back(static_cast<unsigned char>(c) + 1);
  return ids;
}

// Follows a text byte by byte: is each allowed, and the end behind the last?
bool allows(Constraint& constraint, const std::string& text) {
  const Ids ids = bytes_of(text);
  for (size_t n = 0; n < ids.size(); ++n)
    if (!has(constraint.allowed_after(std::span(ids).first(n)), ids[n])) return false;
  return has(constraint.allowed_after(ids), 0);
}

const nlohmann::json& constraint_golden() {
  static const auto golden =
      nlohmann::json::parse(base::read_file(COLLIMATE_SOURCE_DIR "/tests/golden/constraints.json"));
  return golden;
}

TEST(Constraint, AllowsTheTokensThatPythonsReSays) {
  Rules rules(constraint_golden().at("pieces").get<std::vector<std::string>>());
  for (const auto& expression : constraint_golden().at("regexes")) {
    const auto constraint = rules.regex(expression.at("regex"));
    for (const auto& text : expression.at("texts")) {
      Ids tokens = text.at("pieces"), wanted = text.at("allowed");
      for (Ids* ids : {&tokens, &wanted}) std::ranges::for_each(*ids, [](int32_t& id) { ++id; });
      if (text.at("end").get<bool>()) {
        wanted.insert(wanted.begin(), 0);
        wanted.push_back(rules.tokenizer.end());
      }
      EXPECT_EQ(ids_of(constraint->allowed_after(tokens)), wanted) << expression.at("regex") << " after " << text;
    }
  }
}

TEST(Constraint, AllowsTheDocumentsThatJsonschemaSays) {
  Rules rules(all_bytes());
  for (const auto& schema : constraint_golden().at("schemas")) {
    const auto constraint = rules.schema(schema.at("schema"));
    for (const std::string text : schema.at("valid")) EXPECT_TRUE(allows(*constraint, text)) << text << schema;
    for (const std::string text : schema.at("invalid")) EXPECT_FALSE(allows(*constraint, text)) << text << schema;
  }
}

// A model that likes blanks best comes to the end of them.
TEST(Constraint, BlanksBetweenThePartsOfADocumentAreBounded) {
  Rules rules(all_bytes());
  const std::string type = R"("type": "object", "properties": {"a": {"maximum": 1.50}})";
  const std::string twenty(20, ' '), indented = "{\n  \"a\": 1\n}",
                                     most = "{\r\n\n" + twenty + "\"a\":\t1" + twenty + "}";
  const std::string lines = "{\n\n\n\"a\":1}", blanks = "{ " + twenty + "\"a\":1}";
  for (const std::string& schema : {std::string("true"), std::string(" { } "), " {" + type + "}"}) {
    const auto constraint = rules.schema(schema);
    for (const std::string& text : {std::string("{\"a\":1}"), std::string("{ \"a\" : 1 }"), indented, most})
      EXPECT_TRUE(allows(*constraint, text)) << schema << text;
    for (const std::string& text : {lines, blanks}) EXPECT_FALSE(allows(*constraint, text)) << schema << text;
  }
  const auto with = [&](const std::string& options) {
    return rules.schema(R"({"type": "object", "x-guidance": )" + options + "}");
  };
  EXPECT_FALSE(allows(*with(R"({"lenient": true})"), blanks));
  EXPECT_TRUE(allows(*with(R"({"lenient": true})"), most));
  EXPECT_TRUE(allows(*with(R"({"whitespace_flexible": true})"), blanks));
  EXPECT_FALSE(allows(*with(R"({"whitespace_flexible": false})"), indented));
  EXPECT_TRUE(allows(*with(R"({"whitespace_pattern": "[ ]*"})"), blanks));
}

// Numbers beyond a double's range are JSON.
bool is_json(const std::string& text) {
  try {
    return !nlohmann::json::parse(text).is_discarded();
  } catch (const nlohmann::json::out_of_range&) {
    return true;
  } catch (const nlohmann::json::parse_error&) {
    return false;
  }
}

// Any allowed token, one after the other: what comes out is JSON.
TEST(Constraint, WhatFollowsItIsJson) {
  std::vector<std::string> pieces = all_bytes();
  for (const char* longer : {"{\"", "\":", "\",\"", "}}", "],", "[[", "é", "tru", "-1", "e5", "\\\"", "  "})
    pieces.emplace_back(longer);
  Rules rules(pieces);
  int ended = 0;
  for (uint32_t trial = 0; trial < 60; ++trial) {
    const auto constraint = rules.schema(R"({"type": "object", "maxProperties": 3, "additionalProperties": {"anyOf": [
      {"type": "string", "maxLength": 3}, {"type": "number"}, {"type": "boolean"}, {"type": "array", "maxItems": 2}]}})");
    Ids ids;
    std::string text;
    while (ids.size() < 60) {
      const Ids allowed = ids_of(constraint->allowed_after(ids));
      ASSERT_FALSE(allowed.empty()) << text;
      const uint32_t random = base::random_bits(3, 1, trial, static_cast<uint32_t>(ids.size()));
      const int32_t id = allowed.front() == 0 ? 0 : allowed[random % allowed.size()];
      if (id == 0) break;
      ids.push_back(id);
      text += rules.tokenizer.token_bytes(id);
    }
    if (ids.size() == 60) continue;
    ++ended;
    EXPECT_TRUE(is_json(text)) << text;
  }
  EXPECT_GT(ended, 20);
}

// The answer is a function of the tokens: not of what was asked before, broken texts included.
TEST(Constraint, GoesBackAndOnAsItLikes) {
  Rules rules({"a", "b", "ab", "c"});
  const auto one = rules.regex("(ab|ba?c)*c");
  std::vector<Ids> asked;
  for (uint32_t i = 0; i < 300; ++i) {
    Ids ids(base::random_bits(1, 1, i, 0) % 6);
    for (uint32_t n = 0; n < ids.size(); ++n) ids[n] = static_cast<int32_t>(base::random_bits(1, 2, i, n) % 6);
    asked.push_back(ids);
  }
  std::vector<Ids> fresh;
  for (const Ids& ids : asked) fresh.push_back(ids_of(rules.regex("(ab|ba?c)*c")->allowed_after(ids)));
  for (size_t i = 0; i < asked.size(); ++i) EXPECT_EQ(ids_of(one->allowed_after(asked[i])), fresh[i]) << i;
  EXPECT_TRUE(std::ranges::any_of(fresh, [](const Ids& ids) { return ids.empty(); }));
  EXPECT_TRUE(std::ranges::any_of(fresh, [](const Ids& ids) { return !ids.empty(); }));
}

TEST(Constraint, RefusesWhatItCannotFollowByName) {
  using enum TextRule::Kind;
  Rules rules(all_bytes());
  EXPECT_EQ(rules.refusal(kRegex, "(?=x)a"),
            "[rule] expected a regular expression that completions can follow (Rust's syntax), got look-around, "
            "including look-ahead and look-behind, is not supported");
  EXPECT_THAT(rules.refusal(kRegex, "(a)\\1"), HasSubstr("backreferences are not supported"));
  EXPECT_THAT(rules.refusal(kRegex, "(a"), HasSubstr("unclosed group"));
  EXPECT_THAT(rules.refusal(kRegex, std::string("a\0b", 3)), HasSubstr("a zero byte"));
  const std::pair<const char*, const char*> schemas[] = {
      {R"({"type": "array", "uniqueItems": true})", "uniqueItems"},
      {R"({"not": {}})", "\"not\""},
      {R"({"if": {}, "then": {}})", "\"if\""},
      {R"({"type": "string", "format": "foo"})", "foo"},
      {R"({"oneOf": [{"type": "integer"}, {}]})", "oneOf"},
      {R"({"type": "foo"})", "foo"},
      {R"({"$ref": "http://x"})", "http://x"},
      {"false", "Unsatisfiable"},
      {R"({"contains": {}})", "contains"},
      {"{", "ends before its value"},
      {R"({"type": "integer", "type": "string"})", "expected each key once in an object, got \"type\" again"}};
  for (const auto& [schema, cause] : schemas) EXPECT_THAT(rules.refusal(kJsonSchema, schema), HasSubstr(cause));
  EXPECT_THAT(rules.refusal(kJsonSchema, R"({"$ref": "#"})"), HasSubstr("got no token of the vocabulary"));
}

TEST(Constraint, RefusesTextsThatTheVocabularyDoesNotHave) {
  Rules rules({"a", "b"});
  EXPECT_THAT(rules.refusal(TextRule::Kind::kRegex, "x+"), HasSubstr("got no token of the vocabulary that goes on"));
  const auto dead = rules.regex("ab?x");  // it begins well
  EXPECT_EQ(ids_of(dead->allowed_after(Ids{1})), Ids{2});
  EXPECT_TRUE(dead->allowed_after(Ids{1, 2}).empty());
}

// Each of these would be more than a machine holds, or take longer than anyone waits.
TEST(Constraint, HostileRulesAreBounded) {
  Rules rules(all_bytes());
  std::string deep, many = R"({"type": "object", "properties": {)";
  for (int i = 0; i < 5000; ++i) deep += R"({"type": "array", "items": )";
  for (int i = 0; i < 3000; ++i) many += fmt::format(R"({}"p{}": {{"type": "string"}})", i == 0 ? "" : ",", i);
  EXPECT_THAT(rules.refusal(TextRule::Kind::kJsonSchema, deep + "{}" + std::string(5000, '}')),
              HasSubstr("JSON of at most 200 levels"));
  const auto wide = rules.schema(many + "}}");
  EXPECT_TRUE(wide->allowed_after(bytes_of("{")).empty());
  EXPECT_THAT(wide->problem(), HasSubstr("max is 2000"));
  std::string words = "\\w{1,2000}";
  for (int i = 0; i < 5; ++i) words += words;
  const auto costly = rules.regex(words);
  Ids ids;
  while (ids.size() < 2000 && !costly->allowed_after(ids).empty()) ids.push_back('a' + 1);
  EXPECT_LT(ids.size(), 2000U);
  EXPECT_THAT(costly->problem(), HasSubstr("too many"));
  EXPECT_FALSE(costly->allowed_after(Ids{'b' + 1}).empty());  // of another text it can say it
  for (const char* nested : {"((((((a*)*)*)*)*)*)*", "(x+x+)+y", "(.*a.{300})*", "(a|aa)*(b|bb){0,5000}"})
    EXPECT_FALSE(rules.regex(nested)->allowed_after({}).empty()) << nested;
}

}  // namespace
}  // namespace collimate::text
