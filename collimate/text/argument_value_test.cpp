#include "collimate/text/argument_value.h"

#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>

namespace collimate::text {
namespace {

using nlohmann::ordered_json;

TEST(ArgumentValue, IsWhatVllmReads) {
  const auto cases = ordered_json::parse(std::ifstream(COLLIMATE_SOURCE_DIR "/tests/golden/arguments.json"));
  ASSERT_GT(cases.size(), 600U);
  for (const ordered_json& one : cases)
    EXPECT_EQ(ordered_json::parse(argument_value(one[1].get<std::string>(), one[0])), one[2]) << one.dump();
}

TEST(ArgumentValue, KeepsDigitsAndTakesPythonsNone) {
  const auto read = [](const char* written, const char* schema) {
    return argument_value(written, ordered_json::parse(schema));
  };
  EXPECT_EQ(read("12345678901234567890123", R"({"type": "integer"})"), "12345678901234567890123");
  EXPECT_EQ(read("0.1000", R"({"type": ["number", "null"]})"), "0.1000");
  EXPECT_EQ(read(R"({"a": 1.0,  "b": 2})", R"({"type": "object"})"), R"({"a": 1.0,  "b": 2})");
  EXPECT_EQ(read("None", R"({"anyOf": [{"type": "integer"}, {"type": "null"}]})"), "null");
  EXPECT_EQ(read("None", R"({"type": "integer"})"), R"("None")");
  EXPECT_EQ(read("1e999", R"({"type": "number"})"), R"("1e999")");
}

// As of Python: json.loads(R"("\ud83d")") is half of a pair, and of {"a": 1, "a": 2} the last value stays.
TEST(JsonText, MendsWhatPythonReads) {
  EXPECT_EQ(json_text(R"( {"a": "\ud83d", "b": "\ud83d\ude00 \u00e9 \\ud83d", "c": "\ude00\ud83d"} )"),
            R"({"a": "\ufffd", "b": "\ud83d\ude00 \u00e9 \\ud83d", "c": "\ufffd\ufffd"})");
  EXPECT_EQ(json_text(R"({"b": 5, "a": 1, "a": [2]})"), R"({"a":[2],"b":5})");
  for (const std::string& none : {std::string(R"({"a": 1)"), std::string(R"("\ud8)"), std::string(R"({"a": NaN})"),
                                  std::string(300, '[') + std::string(300, ']')})
    EXPECT_EQ(json_text(none), std::nullopt) << none;
}

}  // namespace
}  // namespace collimate::text
