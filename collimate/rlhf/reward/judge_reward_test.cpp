#include "collimate/rlhf/reward/judge_reward.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collimate/base/error.h"
#include "collimate/rlhf/reward/reward.h"
#include "tests/support/base/error_of.h"
#include "tests/support/rlhf/reward/fake_server.h"

namespace collimate::rlhf {
namespace {

using nlohmann::json;
using testing::HasSubstr;

json judged_entry(const std::string& url, const json& more = json::object()) {
  json entry = {{"judge", url}, {"model", "m"}, {"tries", 1}, {"timeout_seconds", 5.0}};
  entry.update(more);
  return entry;
}

// Makes the reward of an entry as a config's is made.
std::unique_ptr<Reward> judging(const json& entry) { return judge_reward(read_entry<JudgeSection>(entry)); }

FakeServer::Answer saying(const std::string& content) {
  return [content](size_t, const json&, httplib::Response& response) {
    answer_json(response, {{"choices", {{{"message", {{"role", "assistant"}, {"content", content}}}}}}});
  };
}

TEST(JudgeReward, ItIsAskedForAScore) {
  const FakeServer server(saying("I gave [[3]] at first, but it is [[ 7.5 ]]."));
  const auto results = judging(judged_entry(server.url("/v1/")))->score({{1, "2+2?", "four", {{"ground_truth", "4"}}}});
  EXPECT_EQ(results.at(0).value, 7.5) << results[0].error;
  const httplib::Request request = server.requests().at(0);
  EXPECT_EQ(request.path, "/v1/chat/completions");
  const json body = json::parse(request.body);
  EXPECT_EQ(body.at("model"), "m");
  EXPECT_EQ(body.at("temperature"), 0);
  EXPECT_EQ(body.at("max_tokens"), 1024);
  ASSERT_EQ(body.at("messages").size(), 1U);
  const std::string asked = body.at("messages").at(0).at("content");
  EXPECT_THAT(asked, HasSubstr("<asked>\n2+2?\n</asked>\n\n<answer>\nfour\n</answer>"));
  EXPECT_THAT(asked, HasSubstr("from 0 (worst) to 10 (best)"));
}

TEST(JudgeReward, PromptSystemAndRequestAreTheUsers) {
  const FakeServer server(saying(R"({"score": 2})"));
  const json entry =
      judged_entry(server.url("/v1/chat/completions"), {{"prompt", "{ground_truth}|{completion}|{\"a\": {}}|{lowest}"},
                                                        {"system", "You judge {prompt}."},
                                                        {"pattern", R"("score": ?\d+)"},
                                                        {"lowest", 1},
                                                        {"highest", 3},
                                                        {"request", {{"max_tokens", nullptr}, {"top_p", 0.5}}}});
  // Braces in a completion are its own.
  const auto results = judging(entry)->score({{1, "it", "{prompt}", {{"ground_truth", {1, 2}}}}});
  EXPECT_EQ(results.at(0).value, 2.0) << results[0].error;
  const json body = json::parse(server.requests().at(0).body);
  EXPECT_EQ(body.at("messages"), json({{{"role", "system"}, {"content", "You judge it."}},
                                       {{"role", "user"}, {"content", "[1,2]|{prompt}|{\"a\": {}}|1"}}}));
  EXPECT_FALSE(body.contains("max_tokens"));
  EXPECT_EQ(body.at("top_p"), 0.5);
}

TEST(JudgeReward, ScoresOfAnyLengthAreRead) {
  for (const auto& [said, score] : std::vector<std::pair<std::string, double>>{
           {"[[0.3333333333333333]]", 0.3333333333333333}, {"[[0.30000000000000004]]", 0.30000000000000004}}) {
    const FakeServer server(saying(said));
    EXPECT_EQ(judging(judged_entry(server.url("/v1?key=a")))->score({{1, "p", "c", {}}}).at(0).value, score);
    EXPECT_EQ(server.requests().at(0).target, "/v1/chat/completions?key=a");
  }
}

TEST(JudgeReward, AnAnswerWithoutAScoreIsAFailure) {
  const std::vector<std::pair<json, std::string>> cases{
      {"It is good.", "the judge's answer has no score that pattern \\[\\["},
      {"[[11]]", "the judge gave 11, expected a score from 0 to 10"},
      {"[[-1]]", "the judge gave -1, expected a score from 0 to 10"},
      {nullptr, "expected choices with a message, got {\"choices\""}};
  for (const auto& [content, error] : cases) {
    const FakeServer server([&](size_t, const json&, httplib::Response& response) {
      answer_json(response, {{"choices", {{{"message", {{"content", content}}}}}}});
    });
    const auto results = judging(judged_entry(server.url("")))->score({{1, "p", "c", {}}});
    EXPECT_FALSE(results.at(0).value);
    EXPECT_THAT(results.at(0).error, HasSubstr(server.url("/chat/completions") + ": " + error));
  }
}

TEST(JudgeReward, AFailureSaysWhatToTry) {
  const auto error_of = [](const std::string& path, const FakeServer::Answer& answer) {
    const FakeServer server(answer);
    return judging(judged_entry(server.url(path)))->score({{1, "p", "c", {}}}).at(0).error;
  };
  const auto status = [](int number) {
    return [number](size_t, const json&, httplib::Response& response) { response.status = number; };
  };
  EXPECT_THAT(error_of("", status(404)), HasSubstr("status 404: ; try an address that ends in /v1, where "));
  EXPECT_THAT(error_of("/v1", status(404)), HasSubstr("status 404: ; try a model that the server has"));
  EXPECT_THAT(error_of("/v1", status(400)), HasSubstr("status 400: ; try request: {MEMBER: null} for a member that "));
  const auto cut = [](size_t, const json&, httplib::Response& response) {
    answer_json(response, {{"choices", {{{"message", {{"content", "<think>Hm"}}}, {"finish_reason", "length"}}}}});
  };
  EXPECT_THAT(error_of("/v1", cut),
              HasSubstr("ends with \"<think>Hm\"; try more tokens for the judge, whose answer was "
                        "cut off, as request: {max_tokens: 4096}"));
  EXPECT_THAT(error_of("/v1", saying("Good.")), HasSubstr("; try a prompt that asks for this form, or a pattern"));
  EXPECT_THAT(error_of("/v1", saying("[[90]]")), HasSubstr("from 0 to 10; try lowest and highest as prompt asks"));
}

TEST(JudgeReward, MembersOfARequestAreSentToItsKey) {
  const auto refused = [](const char* key) {
    return base::message_of<base::InputError>([&] { judging(judged_entry("http://h/v1", {{key, 1}})); });
  };
  EXPECT_THAT(refused("temperature"), HasSubstr("got \"temperature\"; try request: {temperature: VALUE}, which has"));
  EXPECT_THAT(refused("max_score"), testing::EndsWith("try \"highest\""));
  EXPECT_THAT(refused("batch_size"), testing::EndsWith("try leaving it out: a judge gets one sample a request"));
  EXPECT_THAT(refused("api_key"), HasSubstr("try \"key_variable\": the name of a variable"));
}

TEST(JudgeReward, AColumnThatARowLacksIsRefused) {
  const auto reward = judging(judged_entry("http://127.0.0.1:1", {{"prompt", "{rubric} {completion}"}}));
  EXPECT_NO_THROW(reward->check_columns({{"rubric", "r"}}));
  EXPECT_THAT(base::message_of<base::InputError>([&] { reward->check_columns({{"other", 1}}); }), HasSubstr("rubric"));
}

TEST(JudgeReward, AnEntryOfAnotherFormIsRefused) {
  const std::vector<std::pair<json, std::string>> cases{
      {{{"judge", "localhost"}}, "reward.judge to be an address that begins with http"},
      {{{"pattern", "("}}, "reward.pattern to be a regular expression"},
      {{{"lowest", 10}}, "reward.highest to be a number above lowest, 10"},
      {{{"prompt", "Is it good?"}}, "reward.prompt to be a text with {completion}"},
      {{{"request", 3}}, "reward.request to be a map of members"},
      {{{"request", {{"n", 2}}}}, "reward.request to be members other than n"}};
  for (const auto& [more, expected] : cases)
    EXPECT_THAT(base::message_of<base::InputError>([&] { judging(judged_entry("http://h/v1", more)); }),
                HasSubstr("expected " + expected));
}

}  // namespace
}  // namespace collimate::rlhf
