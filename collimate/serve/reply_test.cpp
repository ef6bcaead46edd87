#include "collimate/serve/reply.h"

#include <gtest/gtest.h>

#include <memory>

#include "collimate/base/at.h"

namespace collimate::serve {
namespace {

using nlohmann::ordered_json;

// The ids of this tokenizer's first 256 tokens are their bytes.
const text::Tokenizer& byte_tokenizer() {
  static const auto tokenizer = text::load_tokenizer(COLLIMATE_SOURCE_DIR "/collimate/text/testdata/byte_level");
  return *tokenizer;
}

ApiRequest request_of(Endpoint endpoint, int64_t top) {
  ApiRequest request;
  request.endpoint = endpoint;
  request.prompts.emplace_back(std::string("ab"));
  request.log_probs = true;
  request.top_log_probs = top;
  return request;
}

// "b", then the first byte of two, of which the second was not among the two most likely.
Delta two_tokens() {
  return {.choice = 0,
          .text = "b\xEF\xBF\xBD",
          .tokens = {'b', 0xC3},
          .log_probs = {-0.5F, -4.0F},
          .top_log_probs = {{'b', -0.5F}, {'a', -1.0F}, {0xE2, -0.25F}, {'a', -2.0F}},
          .finish_reason = "length"};
}

ordered_json whole_log_probs(const ApiRequest& request, const std::vector<PromptTokens>& prompts, const Delta& delta) {
  Reply reply(request, prompts, byte_tokenizer(), "m", "id", 0);
  reply.add(delta);
  return reply.whole()["choices"][0]["logprobs"];
}

TEST(Reply, AChatListsTheMostLikelyTokensInOrder) {
  const ApiRequest request = request_of(Endpoint::kChat, 2);
  const std::vector<PromptTokens> prompts(1);
  EXPECT_EQ(whole_log_probs(request, prompts, two_tokens())["content"], ordered_json::parse(R"([
    {"token": "b", "logprob": -0.5, "bytes": [98], "top_logprobs": [
      {"token": "b", "logprob": -0.5, "bytes": [98]}, {"token": "a", "logprob": -1.0, "bytes": [97]}]},
    {"token": "\ufffd", "logprob": -4.0, "bytes": [195], "top_logprobs": [
      {"token": "\ufffd", "logprob": -0.25, "bytes": [226]}, {"token": "a", "logprob": -2.0, "bytes": [97]}]}])"));
}

TEST(Reply, AChatThatAsksForNoneHasEmptyLists) {
  Delta delta = two_tokens();
  delta.top_log_probs.clear();
  const ordered_json got = whole_log_probs(request_of(Endpoint::kChat, 0), std::vector<PromptTokens>(1), delta);
  ASSERT_EQ(got["content"].size(), 2U);
  for (const ordered_json& entry : got["content"]) EXPECT_EQ(entry["top_logprobs"], ordered_json::array());
}

// The drawn token is there too, behind the most likely ones; bytes that are no character have names that differ.
TEST(Reply, ACompletionMapsTokensToLogProbs) {
  const ordered_json got =
      whole_log_probs(request_of(Endpoint::kCompletions, 2), std::vector<PromptTokens>(1), two_tokens());
  EXPECT_EQ(got["tokens"], ordered_json::parse(R"(["b", "bytes:\\xc3"])"));
  EXPECT_EQ(got["token_logprobs"], ordered_json::parse("[-0.5, -4.0]"));
  EXPECT_EQ(got["top_logprobs"], ordered_json::parse(R"([
    {"b": -0.5, "a": -1.0}, {"bytes:\\xe2": -0.25, "a": -2.0, "bytes:\\xc3": -4.0}])"));
}

TEST(Reply, ACompletionThatAsksForNoneHasNull) {
  Delta delta = two_tokens();
  delta.top_log_probs.clear();
  const ordered_json got = whole_log_probs(request_of(Endpoint::kCompletions, 0), std::vector<PromptTokens>(1), delta);
  EXPECT_TRUE(got["top_logprobs"].is_null());
  EXPECT_EQ(got["tokens"].size(), 2U);
}

TEST(Reply, EchoListsThePromptsToo) {
  ApiRequest request = request_of(Endpoint::kCompletions, 1);
  request.echo = true;
  const std::vector<PromptTokens> prompts = {
      {.ids = {'a', 'b'}, .text = "ab", .log_probs = {0.0F, -3.0F}, .top_log_probs = {{'x', 0.0F}, {'c', -0.5F}}}};
  Delta delta = two_tokens();
  delta.top_log_probs = {{'b', -0.5F}, {'a', -0.125F}};
  const ordered_json want =
      ordered_json::parse(R"([null, {"c": -0.5, "b": -3.0}, {"b": -0.5}, {"a": -0.125, "bytes:\\xc3": -4.0}])");
  EXPECT_EQ(whole_log_probs(request, prompts, delta)["top_logprobs"], want);

  Reply streamed(request, prompts, byte_tokenizer(), "m", "id", 0);
  ordered_json parts = streamed.opening().at(0)["choices"][0]["logprobs"]["top_logprobs"];
  const ordered_json chunk = streamed.chunk(delta);
  for (const ordered_json& one : chunk["choices"][0]["logprobs"]["top_logprobs"]) parts.push_back(one);
  EXPECT_EQ(parts, want);
}

// The decoder drops the space in front of a text, as Llama's does.
TEST(Reply, OffsetsAreThoseOfTheText) {
  const auto words = text::load_tokenizer(COLLIMATE_SOURCE_DIR "/collimate/text/testdata/sentencepiece");
  const ApiRequest request = request_of(Endpoint::kCompletions, 0);
  const std::vector<int32_t> ids = words->encode(" cat sat", {.continues = true});
  ASSERT_EQ(ids.size(), 2U);
  const Delta delta{.choice = 0, .tokens = ids, .log_probs = {0.F, 0.F}};
  for (const auto& [prompt, second] : {std::pair("", 3), std::pair("the", 4)}) {
    const std::vector<PromptTokens> prompts = {{.ids = words->encode(prompt, {.add_special = true}), .text = prompt}};
    Reply reply(request, prompts, *words, "m", "id", 0);
    reply.add(delta);
    const ordered_json want = {0, second};
    EXPECT_EQ(reply.whole()["choices"][0]["logprobs"]["text_offset"], want) << prompt;
    EXPECT_EQ(reply.chunk(delta)["choices"][0]["logprobs"]["text_offset"], want) << prompt;
  }
}

// In a stream the calls of a choice are numbered on; an answer of calls alone has no content.
TEST(Reply, CallsOfToolsAreOpenAis) {
  ApiRequest request = request_of(Endpoint::kChat, 0);
  request.log_probs = false;
  const std::vector<PromptTokens> prompts(1);
  const Delta first{.calls = {{"add", R"({"a":1})"}}}, last{.calls = {{"now", "{}"}}, .finish_reason = "tool_calls"};
  Reply whole(request, prompts, byte_tokenizer(), "m", "id", 0),
      stream(request, prompts, byte_tokenizer(), "m", "id", 0);
  whole.add(first);
  whole.add(last);
  const ordered_json choice = whole.whole()["choices"][0], calls = choice["message"]["tool_calls"];
  EXPECT_EQ(choice["message"]["content"], nullptr);
  EXPECT_EQ(choice["finish_reason"], "tool_calls");
  ASSERT_EQ(calls.size(), 2U);
  EXPECT_EQ(calls[0]["function"].dump(), R"({"name":"add","arguments":"{\"a\":1}"})");
  EXPECT_EQ(calls[1]["type"], "function");
  EXPECT_EQ(calls[0]["id"].get<std::string>().size(), 9U);
  EXPECT_NE(calls[0]["id"], calls[1]["id"]);
  for (const auto& [delta, index] : {std::pair(first, 0), {last, 1}}) {
    const ordered_json sent = stream.chunk(delta)["choices"][0]["delta"];
    EXPECT_FALSE(sent.contains("content"));
    ordered_json expected = {{"index", index}};
    expected.update(base::at(calls, index));
    EXPECT_EQ(sent["tool_calls"], ordered_json::array({expected}));
  }
}

// A call keeps the id that the model gave it; thoughts stand beside the content under vLLM's older name.
TEST(Reply, ThoughtsAndIdsAreTheModels) {
  ApiRequest request = request_of(Endpoint::kChat, 0);
  request.log_probs = false;
  const std::vector<PromptTokens> prompts(1);
  const Delta thought{.thoughts = "I add."}, call{.calls = {{"add", "{}", "a1B2c3D4e"}}, .finish_reason = "tool_calls"};
  Reply reply(request, prompts, byte_tokenizer(), "m", "id", 0);
  reply.add(thought);
  reply.add(call);
  const ordered_json message = reply.whole()["choices"][0]["message"];
  EXPECT_EQ(message["reasoning_content"], "I add.");
  EXPECT_EQ(message["tool_calls"][0]["id"], "a1B2c3D4e");
  EXPECT_EQ(reply.chunk(thought)["choices"][0]["delta"], ordered_json({{"reasoning_content", "I add."}}));
}

}  // namespace
}  // namespace collimate::serve
