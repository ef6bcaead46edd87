#include "collimate/serve/api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <set>

#include "tests/support/generate/sampling_fields.h"

namespace collimate::serve {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

const json kChat = json::parse(R"({"model": "m", "messages": [{"role": "user", "content": "Hi"}]})");
const json kText = json::parse(R"({"model": "m", "prompt": "Hi"})");

ApiRequest chat(const json& more = json::object()) {
  json body = kChat;
  body.update(more);
  return parse_request(Endpoint::kChat, body.dump(), {});
}
ApiRequest completion(const json& more = json::object()) {
  json body = kText;
  body.update(more);
  return parse_request(Endpoint::kCompletions, body.dump(), {});
}

// The error that a body gives; its status must be 400.
ApiError error_of(Endpoint endpoint, const std::string& body) {
  try {
    parse_request(endpoint, body, {});
  } catch (const ApiError& error) {
    EXPECT_EQ(error.status, 400);
    return error;
  }
  ADD_FAILURE() << "accepted: " << body;
  return ApiError(0, "");
}
std::string wrong_field(Endpoint endpoint, const json& more) {
  json body = endpoint == Endpoint::kChat ? kChat : kText;
  body.update(more);
  return error_of(endpoint, body.dump()).param;
}

TEST(Api, ReadsACompletionWithOpenAisDefaults) {
  const ApiRequest request = completion();
  EXPECT_EQ(request.model, "m");
  ASSERT_EQ(request.prompts.size(), 1U);
  EXPECT_EQ(std::get<std::string>(request.prompts[0]), "Hi");
  EXPECT_EQ(request.sampling.max_tokens, 16);
  EXPECT_EQ(request.sampling.temperature, 1.0);
  EXPECT_EQ(request.choices(), 1);
  EXPECT_FALSE(request.to_the_end || request.stream || request.log_probs || request.echo || request.seed);
}

TEST(Api, AChatWithoutMaxTokensGoesToTheEnd) {
  EXPECT_TRUE(chat().to_the_end);
  EXPECT_FALSE(chat({{"max_tokens", 3}}).to_the_end);
  EXPECT_EQ(chat({{"max_completion_tokens", 4}}).sampling.max_tokens, 4);
  EXPECT_EQ(chat({{"max_completion_tokens", 4}, {"max_tokens", 3}}).sampling.max_tokens, 4);
  EXPECT_EQ(chat({{"max_completion_tokens", nullptr}, {"max_tokens", 3}}).sampling.max_tokens, 3);
  const ApiRequest request = chat();
  EXPECT_EQ(*text::turns_of(request.prompts[0]), (text::Messages{{"user", "Hi"}}));
}

TEST(Api, ReadsEveryFieldOfItsOwn) {
  const ApiRequest request = completion({{"max_tokens", 0},
                                         {"temperature", 0},
                                         {"top_p", 0.5},
                                         {"top_k", 4},
                                         {"min_p", 0.1},
                                         {"ignore_eos", true},
                                         {"stop_token_ids", {5}},
                                         {"timeout", 2.5},
                                         {"seed", -7},
                                         {"n", 2},
                                         {"stop", "x"},
                                         {"echo", true},
                                         {"logprobs", 1},
                                         {"stream", true},
                                         {"stream_options", {{"include_usage", true}}},
                                         {"return_token_ids", true}});
  EXPECT_EQ(request.sampling.max_tokens, 0);
  EXPECT_EQ(request.sampling.temperature, 0);
  EXPECT_EQ(request.sampling.top_p, 0.5);
  EXPECT_EQ(request.sampling.top_k, 4);
  EXPECT_EQ(request.sampling.min_p, 0.1);
  EXPECT_TRUE(request.sampling.ignore_eos);
  EXPECT_THAT(request.sampling.stop_ids, ElementsAre(5));
  EXPECT_EQ(request.sampling.timeout_seconds, 2.5);
  EXPECT_EQ(request.seed, -7);
  EXPECT_EQ(request.choices(), 2);
  EXPECT_THAT(request.stop, ElementsAre("x"));
  EXPECT_TRUE(request.echo && request.log_probs && request.top_log_probs && request.stream && request.include_usage &&
              request.return_token_ids);
  EXPECT_TRUE(chat({{"logprobs", true}}).log_probs);
  EXPECT_THAT(chat({{"stop", {"a", "b"}}}).stop, ElementsAre("a", "b"));
}

TEST(Api, ReadsEveryFieldOfSamplingWithItsLimits) {
  for (const generate::SamplingField& field : generate::kSamplingFields) {
    if (field.request == nullptr) continue;
    const json value = generate::testing_support::other_value(field);
    EXPECT_EQ(completion({{field.request, value}}).sampling.to_json().at(field.name), value) << field.request;
    for (const auto& [probe, allowed] : generate::testing_support::probes(field)) {
      const json one = {{field.request, probe}};
      if (allowed) {
        EXPECT_NO_THROW(completion(one)) << one;
      } else {
        EXPECT_EQ(wrong_field(Endpoint::kCompletions, one), field.request) << one;
      }
    }
  }
}

// The names in the first column of a page's tables under a heading: `a`, `b.c` and the like, without what follows a
// dot.
std::set<std::string> documented_fields(const std::string& page, const std::string& heading) {
  std::ifstream file(COLLIMATE_SOURCE_DIR "/docs/" + page);
  std::set<std::string> names;
  bool here = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("#")) here = line == heading;
    if (!here || !line.starts_with("| `")) continue;
    const std::string column = line.substr(0, line.find('|', 1));
    for (size_t from = 0; (from = column.find('`', from)) != std::string::npos;) {
      const size_t end = column.find('`', from + 1);
      const std::string name = column.substr(from + 1, end - from - 1);
      names.insert(name.substr(0, name.find('.')));
      from = end + 1;
    }
  }
  return names;
}

TEST(Api, ThePageOfFieldsHasThoseOfSamplingAndNoneThatIsNotRead) {
  const std::set<std::string> documented = documented_fields("serving.md", "## Fields");
  EXPECT_GT(documented.size(), std::size(generate::kSamplingFields));
  for (const generate::SamplingField& field : generate::kSamplingFields) {
    if (field.request == nullptr) continue;
    EXPECT_TRUE(documented.contains(field.request)) << field.request;
  }
  const auto known = [](Endpoint endpoint, json body, const std::string& name) {
    try {
      body.emplace(name, nullptr);
      parse_request(endpoint, body.dump(), {});
    } catch (const ApiError&) {
      return false;
    }
    return true;
  };
  for (const std::string& name : documented)
    EXPECT_TRUE(known(Endpoint::kChat, kChat, name) || known(Endpoint::kCompletions, kText, name)) << name;
}

TEST(Api, APromptIsATextIdsOrAListOfEither) {
  EXPECT_EQ(std::get<std::vector<int32_t>>(completion({{"prompt", {1, 2}}}).prompts[0]), (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(completion({{"prompt", {"a", "b", "c"}}, {"n", 2}}).choices(), 6);
  EXPECT_EQ(completion({{"prompt", json::parse("[[1],[2,3]]")}}).prompts.size(), 2U);
  for (const char* bad : {"[]", "7", "{}", "[1.5]", "[-1]", "[4294967296]", "[1,\"a\"]", "[[\"a\"]]", "[true]"})
    EXPECT_EQ(wrong_field(Endpoint::kCompletions, {{"prompt", json::parse(bad)}}), "prompt") << bad;
}

TEST(Api, NullIsAsIfItWereNotThere) {
  EXPECT_EQ(completion({{"max_tokens", nullptr}, {"stop", nullptr}, {"seed", nullptr}, {"logit_bias", nullptr}})
                .sampling.max_tokens,
            16);
}

TEST(Api, NamesTheFieldThatIsWrong) {
  const std::pair<const char*, const char*> wrong[] = {{"temperature", "-1"},
                                                       {"temperature", "\"hot\""},
                                                       {"top_p", "0"},
                                                       {"top_k", "-1"},
                                                       {"min_p", "2"},
                                                       {"max_tokens", "-1"},
                                                       {"max_tokens", "1.5"},
                                                       {"max_tokens", "18446744073709551615"},
                                                       {"n", "0"},
                                                       {"n", "1000"},
                                                       {"timeout", "-1"},
                                                       {"timeout", "\"1\""},
                                                       {"seed", "1.5"},
                                                       {"stop", "\"\""},
                                                       {"stop", "[1]"},
                                                       {"stream", "1"},
                                                       {"echo", "\"yes\""},
                                                       {"logprobs", "6"},
                                                       {"logprobs", "-1"},
                                                       {"logprobs", "true"},
                                                       {"stop_token_ids", "[-1]"},
                                                       {"temperature", "1e-40"},
                                                       {"repetition_penalty", "1e-300"},
                                                       {"model", "7"},
                                                       {"stream_options", "{\"x\":1}"},
                                                       {"return_token_ids", "0"}};
  for (const auto& [name, value] : wrong)
    EXPECT_EQ(wrong_field(Endpoint::kCompletions, {{name, json::parse(value)}}), name) << value;
  const std::vector<int32_t> ids(1025, 3);  // each completion has its own: a body of 4 MB would be gigabytes
  EXPECT_EQ(wrong_field(Endpoint::kCompletions, {{"stop_token_ids", ids}}), "stop_token_ids");
  json biases = json::object();
  for (int id = 0; id < 1025; ++id) biases[std::to_string(id)] = 1;
  EXPECT_EQ(wrong_field(Endpoint::kChat, {{"logit_bias", biases}}), "logit_bias");
  biases.erase("0");
  EXPECT_EQ(chat({{"logit_bias", biases}}).sampling.logit_bias.size(), 1024U);
  EXPECT_EQ(wrong_field(Endpoint::kChat, {{"top_logprobs", 1}}), "top_logprobs");
  EXPECT_EQ(wrong_field(Endpoint::kChat, {{"top_logprobs", 1}, {"logprobs", false}}), "top_logprobs");
  EXPECT_EQ(wrong_field(Endpoint::kChat, {{"top_logprobs", 21}, {"logprobs", true}}), "top_logprobs");
  EXPECT_EQ(wrong_field(Endpoint::kChat, {{"top_logprobs", -1}, {"logprobs", true}}), "top_logprobs");
  EXPECT_EQ(wrong_field(Endpoint::kCompletions, {{"top_logprobs", 1}}), "top_logprobs");
  EXPECT_EQ(wrong_field(Endpoint::kChat, {{"logprobs", 1}}), "logprobs");
  EXPECT_EQ(wrong_field(Endpoint::kCompletions, {{"min_tokens", 20}}), "min_tokens");  // of 16
  EXPECT_EQ(completion({{"min_tokens", 200}, {"max_tokens", 512}}).sampling.min_tokens, 200);
  EXPECT_EQ(chat({{"min_tokens", 200}}).sampling.min_tokens, 200);
}

// The engine is told of them under any sampling.
TEST(Api, TopLogProbsAreANumberOfTokens) {
  const json hot = {{"logprobs", true}, {"temperature", 1.5}, {"logit_bias", {{"5", 1}}}, {"top_p", 0.5}};
  for (const int64_t count : {0, 1, 20}) {
    json asked = hot;
    asked["top_logprobs"] = count;
    const ApiRequest request = chat(asked);
    EXPECT_TRUE(request.log_probs);
    EXPECT_EQ(request.top_log_probs, count);
    EXPECT_EQ(request.sampling.top_log_probs, count);
  }
  for (const int64_t count : {0, 1, 5}) {
    const ApiRequest request = completion({{"logprobs", count}, {"temperature", 1.5}});
    EXPECT_TRUE(request.log_probs);
    EXPECT_EQ(request.top_log_probs, count);
    EXPECT_EQ(request.sampling.top_log_probs, count);
  }
  EXPECT_EQ(chat(hot).top_log_probs, 0);
  EXPECT_EQ(chat({{"top_logprobs", 0}}).top_log_probs, 0);
  EXPECT_FALSE(completion().log_probs);
}

TEST(Api, RefusesWhatWouldChangeTheResultAndIsNotOffered) {
  const std::pair<const char*, const char*> refused[] = {
      {"best_of", "2"}, {"use_beam_search", "true"}, {"audio", "{}"}, {"verbosity", "\"high\""}, {"functions", "[{}]"}};
  for (const auto& [name, value] : refused) {
    json body = kChat;
    body[name] = json::parse(value);
    const ApiError error = error_of(Endpoint::kChat, body.dump());
    EXPECT_EQ(error.param, name);
    EXPECT_EQ(error.code, "unsupported_parameter");
  }
  // A field that says only that nothing is to be done is accepted.
  chat({{"presence_penalty", 0},
        {"logit_bias", json::object()},
        {"tools", json::array()},
        {"best_of", 1},
        {"response_format", {{"type", "text"}}},
        {"structured_outputs", nullptr},
        {"tool_choice", "none"},
        {"user", "me"}});
}

// Keys keep the order in which a request has them, as templates show them.
TEST(Api, ReadsToolsAndWhatTheTemplateIsGiven) {
  const char* body = R"({"tools": [{"type": "function", "function": {"name": "now", "description": "d", "a": 1}}],
    "tool_choice": "auto", "chat_template_kwargs": {"z": 1, "b": false}, "messages": [{"role": "user", "content": "Hi"},
    {"role": "assistant", "content": null, "refusal": null, "tool_calls": [{"id": "i", "type": "function",
      "function": {"name": "now", "arguments": "{\"z\": 1}"}}]},
    {"role": "tool", "tool_call_id": "i", "content": "12:00"}]})";
  const ApiRequest request = parse_request(Endpoint::kChat, body, {});
  EXPECT_THAT(request.tools, ElementsAre("now"));
  const auto& conversation = std::get<text::Conversation>(request.prompts.at(0));
  EXPECT_EQ(conversation.inputs.tools.dump(),
            R"([{"type":"function","function":{"name":"now","description":"d","a":1}}])");
  EXPECT_EQ(conversation.inputs.variables.dump(), R"({"z":1,"b":false})");
  ASSERT_EQ(conversation.turns.size(), 3U);
  EXPECT_TRUE(conversation.turns[1].calls_tools());
  EXPECT_EQ(conversation.turns[2].more, nlohmann::ordered_json({{"tool_call_id", "i"}}));
  json none = json::parse(body);
  none["tool_choice"] = "none";
  const ApiRequest silent = parse_request(Endpoint::kChat, none.dump(), {});
  EXPECT_TRUE(silent.tools.empty());
  EXPECT_TRUE(std::get<text::Conversation>(silent.prompts.at(0)).inputs.tools.is_null());
}

TEST(Api, ReadsWhichCallsHaveToCome) {
  const json tool = {{"type", "function"}, {"function", {{"name", "now"}}}};
  const auto read = [&](const json& choice, bool parallel) {
    json body = kChat;
    body.update({{"tools", {tool}}, {"tool_choice", choice}, {"response_format", {{"type", "text"}}}});
    if (!parallel) body["parallel_tool_calls"] = false;
    return parse_request(Endpoint::kChat, body.dump(), {});
  };
  EXPECT_FALSE(read("auto", true).must_call);
  EXPECT_TRUE(read("required", true).must_call);
  EXPECT_TRUE(read("required", true).parallel_calls);
  EXPECT_FALSE(read("required", false).parallel_calls);
  EXPECT_EQ(read("required", true).called_tool, "");
  EXPECT_TRUE(read(tool, true).must_call);
  EXPECT_EQ(read(tool, true).called_tool, "now");
}

// The template would show another number.
TEST(Api, RefusesWholeNumbersOfMoreThan64Bits) {
  const std::string body = R"({"messages": [{"role": "user", "content": "Hi"}], "tools": [{"type": "function",
    "function": {"name": "now", "most": NUMBER}}]})";
  const auto with = [&](const std::string& number) {
    return std::string(body).replace(body.find("NUMBER"), 6, number);
  };
  EXPECT_EQ(std::string(error_of(Endpoint::kChat, with("18446744073709551616")).what()),
            "[request] expected whole numbers of 64 bits, got 18446744073709551616, which would become "
            "1.8446744073709552e+19; try quotes around it, \"18446744073709551616\"");
  const ApiRequest request = parse_request(Endpoint::kChat, with("18446744073709551615"), {});
  EXPECT_THAT(std::get<text::Conversation>(request.prompts.at(0)).inputs.tools.dump(),
              HasSubstr("18446744073709551615"));
}

TEST(Api, RefusesToolsOfOtherKinds) {
  const json tool = {{"type", "function"}, {"function", {{"name", "now"}}}};
  for (const char* bad : {"[{}]", "5", R"([{"type": "custom", "function": {"name": "f"}}])",
                          R"([{"type": "function", "function": {"name": 5}}])"})
    EXPECT_EQ(wrong_field(Endpoint::kChat, {{"tools", json::parse(bad)}}), "tools") << bad;
  const json other = {{"type", "function"}, {"function", {{"name", "then"}}}};
  for (const json& choice : {json("any"), json(5), json({{"type", "function"}}), other})
    EXPECT_EQ(wrong_field(Endpoint::kChat, {{"tools", {tool}}, {"tool_choice", choice}}), "tool_choice") << choice;
  EXPECT_EQ(wrong_field(Endpoint::kChat, {{"tool_choice", "required"}}), "tool_choice");
  EXPECT_EQ(wrong_field(Endpoint::kChat, {{"tools", {tool}}, {"tool_choice", "required"}, {"guided_regex", "a"}}),
            "tool_choice");
  EXPECT_EQ(wrong_field(Endpoint::kChat, {{"tools", {tool}}, {"parallel_tool_calls", false}}), "parallel_tool_calls");
  EXPECT_EQ(wrong_field(Endpoint::kChat, {{"chat_template_kwargs", {1}}}), "chat_template_kwargs");
  EXPECT_EQ(wrong_field(Endpoint::kCompletions, {{"tools", {tool}}}), "tools");
  json many = json::object();
  for (int i = 0; i < 20'000; ++i) many[std::to_string(i)] = i;
  json body = kChat;
  body["metadata"] = many;
  EXPECT_THAT(error_of(Endpoint::kChat, body.dump()).what(), HasSubstr("at most 10000 keys in an object, got 20000"));
}

TEST(Api, RefusesFieldsThatNobodyKnows) {
  EXPECT_EQ(wrong_field(Endpoint::kChat, {{"max_token", 5}}), "max_token");
  EXPECT_EQ(wrong_field(Endpoint::kChat, {{"prompt", "a"}}), "prompt");
  EXPECT_EQ(wrong_field(Endpoint::kCompletions, {{"messages", json::array()}}), "messages");
}

TEST(Api, RefusesMessagesOfOtherShapes) {
  for (const char* bad : {"[]", "\"hi\"", "[1]", "[{\"role\":\"user\"}]", "[{\"role\":1,\"content\":\"a\"}]",
                          "[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\"}]}]",
                          "[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":5}]}]",
                          "[{\"role\":\"user\",\"content\":[{\"type\":5,\"text\":\"a\"}]}]",
                          "[{\"role\":\"assistant\",\"content\":\"a\",\"tool_calls\":[{}]}]"})
    EXPECT_EQ(wrong_field(Endpoint::kChat, {{"messages", json::parse(bad)}}), "messages") << bad;
  const json parts =
      json::parse(R"([{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}])");
  EXPECT_EQ(text::turns_of(chat({{"messages", parts}}).prompts[0])->at(0).content, "ab");
}

TEST(Api, RefusesBodiesThatAreNoJsonObjectInUtf8) {
  EXPECT_THAT(error_of(Endpoint::kChat, "{\"model\": \"\xff\"}").what(), HasSubstr("UTF-8"));
  EXPECT_THAT(error_of(Endpoint::kChat, "{\"model\": ").what(), HasSubstr("JSON"));
  EXPECT_THAT(error_of(Endpoint::kChat, "{\"model\": \"\\ud800\"}").what(), HasSubstr("JSON"));
  EXPECT_THAT(error_of(Endpoint::kChat, "{\"temperature\": 1e999}").what(), HasSubstr("JSON"));
  EXPECT_THAT(error_of(Endpoint::kChat, "").what(), HasSubstr("JSON"));
  EXPECT_THAT(error_of(Endpoint::kChat, "[]").what(), HasSubstr("object"));
  EXPECT_THAT(error_of(Endpoint::kChat, std::string(1 << 20, '[')).what(), HasSubstr("nesting"));
  EXPECT_EQ(error_of(Endpoint::kChat, "{}").param, "messages");
  EXPECT_EQ(error_of(Endpoint::kCompletions, "{}").param, "prompt");
}

TEST(Api, AnErrorHasOpenAisForm) {
  const json body = json::parse(error_body(ApiError(400, "wrong \xff", "n", "invalid_value")));
  EXPECT_EQ(body, (json{{"error",
                         {{"message", "wrong \xef\xbf\xbd"},
                          {"type", "invalid_request_error"},
                          {"param", "n"},
                          {"code", "invalid_value"}}}}));
  EXPECT_EQ(json::parse(error_body(ApiError(429, "")))["error"]["type"], "rate_limit_error");
  EXPECT_EQ(json::parse(error_body(ApiError(500, "")))["error"]["type"], "server_error");
  EXPECT_TRUE(json::parse(error_body(ApiError(500, "")))["error"]["param"].is_null());
}

TEST(Api, AnotherModelIsNotFound) {
  check_model("m", "m");
  try {
    check_model("other", "m");
    FAIL();
  } catch (const ApiError& error) {
    EXPECT_EQ(error.status, 404);
    EXPECT_EQ(error.code, "model_not_found");
  }
}

}  // namespace
}  // namespace collimate::serve
