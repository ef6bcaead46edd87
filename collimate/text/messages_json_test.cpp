#include "collimate/text/messages_json.h"

#include <gmock/gmock.h>

#include "tests/support/text/written_files.h"

namespace collimate::text {
namespace {

using nlohmann::ordered_json;
using testing::HasSubstr;

const std::string kCalls = R"("tool_calls": [{"type": "function", "function": {"name": "f", "arguments": "{}"}}])";

Message message_of_text(const std::string& members) {
  return message_from_json(ordered_json::parse("{" + members + "}"), "here");
}
std::string error_of_call(const std::string& call) {
  return message_of<base::InputError>([&] { message_of_text(R"("role": "assistant", "tool_calls": [)" + call + "]"); });
}

TEST(MessagesJson, CallsNeedNoContent) {
  for (const std::string content : {R"("content": null, )", R"("content": "c", )", ""}) {
    const Message message = message_of_text(R"("role": "assistant", )" + content + kCalls);
    EXPECT_EQ(message.more, ordered_json::parse("{" + kCalls + "}"));
    EXPECT_EQ(message.content, content.find(R"("c")") == std::string::npos ? "" : "c");
    EXPECT_TRUE(message.calls_tools());
  }
  EXPECT_FALSE(message_of_text(R"("role": "assistant", "content": "c", "tool_calls": [])").calls_tools());
}

TEST(MessagesJson, ACallByItselfIsAFunctions) {
  EXPECT_EQ(message_of_text(R"("role": "assistant", "tool_calls": [{"name": "f"}])").more.dump(),
            R"({"tool_calls":[{"type":"function","function":{"name":"f","arguments":{}}}]})");
}

TEST(MessagesJson, CallsOfOtherFormsAreRefused) {
  EXPECT_EQ(error_of_call("5"), "[here] expected calls of tools {function: {name, arguments}}, got 5");
  EXPECT_THAT(error_of_call(R"({"function": {"arguments": {}}})"), HasSubstr("expected calls of tools"));
  EXPECT_THAT(error_of_call(R"({"name": "f", "arguments": "{"})"),
              HasSubstr("[here arguments of f] expected well-formed JSON"));
  EXPECT_THAT(error_of_call(R"({"name": "f", "arguments": [1]})"),
              HasSubstr("expected a call's arguments as an object"));
  const auto error = [](const std::string& members) {
    return message_of<base::InputError>([&] { message_of_text(members); });
  };
  EXPECT_THAT(error(R"("role": "user", "content": "c", )" + kCalls),
              HasSubstr("expected calls of tools in messages of the assistant alone"));
  EXPECT_THAT(error(R"("role": "tool", "content": "c", "name": 5)"), HasSubstr("expected name as text, got 5"));
}

// Python's json, which has no bounds, would keep it; as a double it would be 1.2345678901234568e+22.
TEST(MessagesJson, ANumberThatReadingWouldChangeIsRefused) {
  EXPECT_THAT(error_of_call(R"({"name": "f", "arguments": "{\"n\": 12345678901234567890123, \"answer\": 1.10}"})"),
              HasSubstr("arguments of f] expected whole numbers of 64 bits, got 12345678901234567890123, which would"));
  EXPECT_NO_THROW(message_of_text(
      R"("role": "assistant", "tool_calls": [{"name": "f", "arguments": "{\"n\": 9223372036854775807, \"answer\": 1.10}"}])"));
}

TEST(MessagesJson, ThoughtsHaveOneName) {
  for (const std::string name : {"reasoning_content", "thinking", "reasoning"})
    EXPECT_EQ(message_of_text(R"("role": "assistant", "content": "c", ")" + name + R"(": "hm")").more,
              ordered_json({{"reasoning_content", "hm"}}));
}

}  // namespace
}  // namespace collimate::text
