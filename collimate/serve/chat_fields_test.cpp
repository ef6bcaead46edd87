#include "collimate/serve/chat_fields.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace collimate::serve {
namespace {

using nlohmann::json;

ApiRequest asked_with(json fields) {
  fields["messages"] = {{{"role", "user"}, {"content", "Hi"}}};
  return parse_request(Endpoint::kChat, fields.dump(), {});
}

// A variable of the template has that name; what chat_template_kwargs has beside it stays.
TEST(ChatFields, ReadHowMuchAModelThinks) {
  const auto variables = [](const json& fields) {
    return std::get<text::Conversation>(asked_with(fields).prompts.at(0)).inputs.variables.dump();
  };
  EXPECT_EQ(variables({{"reasoning_effort", "high"}}), R"({"reasoning_effort":"high"})");
  EXPECT_EQ(variables({{"reasoning_effort", "low"}, {"chat_template_kwargs", {{"z", 1}}}}),
            R"({"z":1,"reasoning_effort":"low"})");
  EXPECT_EQ(variables({{"reasoning_effort", "low"}, {"chat_template_kwargs", {{"reasoning_effort", "low"}}}}),
            R"({"reasoning_effort":"low"})");
  EXPECT_EQ(variables({{"reasoning_effort", nullptr}}), "null");
}

TEST(ChatFields, RefuseOtherWordsForIt) {
  const auto refusal = [](const json& fields) {
    try {
      asked_with(fields);
    } catch (const ApiError& error) {
      EXPECT_EQ(error.param, "reasoning_effort");
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(refusal({{"reasoning_effort", "hard"}}),
            "[reasoning_effort] expected one of none, minimal, low, medium, high, xhigh, got \"hard\"; try "
            "chat_template_kwargs for another word of the template");
  EXPECT_NE(refusal({{"reasoning_effort", 3}}), "");
  EXPECT_EQ(refusal({{"reasoning_effort", "low"}, {"chat_template_kwargs", {{"reasoning_effort", "high"}}}}),
            "[reasoning_effort] expected \"high\", as chat_template_kwargs says, got \"low\"; try leaving one of them "
            "out");
}

}  // namespace
}  // namespace collimate::serve
