#include <gtest/gtest.h>

#include "collimate/serve/api.h"

namespace collimate::serve {
namespace {

using nlohmann::json;

TEST(ApiRules, AModelsOwnSamplingIsThatOfRequestsThatNameNone) {
  const ApiRules rules{.sampling = {{"temperature", 0.5}, {"top_k", 20}}};
  const auto sampling_of = [&](const json& more) {
    json body = {{"prompt", "Hi"}};
    body.update(more);
    return parse_request(Endpoint::kCompletions, body.dump(), rules).sampling;
  };
  EXPECT_EQ(sampling_of(json::object()).temperature, 0.5);
  EXPECT_EQ(sampling_of(json::object()).top_k, 20);
  EXPECT_EQ(sampling_of({{"temperature", nullptr}}).temperature, 0.5);
  EXPECT_EQ(sampling_of({{"temperature", 0.9}}).temperature, 0.9);
  EXPECT_EQ(sampling_of({{"temperature", 0.9}}).top_k, 20);
  const std::string chat = R"({"messages": [{"role": "user", "content": "Hi"}]})";
  EXPECT_EQ(parse_request(Endpoint::kChat, chat, rules).sampling.temperature, 0.5);
  // A request that draws nothing asks for log-probs of the prompt, which are those of the model.
  EXPECT_EQ(sampling_of({{"max_tokens", 0}, {"echo", true}, {"logprobs", 1}}).temperature, 1.0);
}

}  // namespace
}  // namespace collimate::serve
