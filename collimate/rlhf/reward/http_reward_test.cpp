#include "collimate/rlhf/reward/http_reward.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <stdexcept>

#include "collimate/base/error.h"
#include "collimate/rlhf/reward/reward.h"
#include "tests/support/base/error_of.h"
#include "tests/support/rlhf/reward/fake_server.h"

namespace collimate::rlhf {
namespace {

using nlohmann::json;
using testing::HasSubstr;

std::vector<RewardSample> asked_samples(int64_t count) {
  std::vector<RewardSample> samples;
  for (int64_t i = 0; i < count; ++i)
    samples.push_back({i, "p" + std::to_string(i), "c" + std::to_string(i), {{"ground_truth", i}}});
  return samples;
}

// Answers each completion with the number behind its first letter.
void answer_numbers(size_t, const json& request, httplib::Response& response) {
  json rewards = json::array();
  for (const json& completion : request.at("completions"))
    rewards.push_back(std::stoi(completion.get<std::string>().substr(1)));
  answer_json(response, {{"rewards", rewards}});
}

// Answers until `over`, a byte at a time, so that no single wait for the next one is long.
FakeServer::Answer answer_until(const std::atomic<bool>& over) {
  return [&over](size_t, const json&, httplib::Response& response) {
    response.set_chunked_content_provider("application/json", [&over](size_t, httplib::DataSink& sink) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      return !over && sink.write(" ", 1);
    });
  };
}

HttpSection asking(const std::string& url, int64_t tries = 2) {
  HttpSection options;
  options.http = url;
  options.tries = tries;
  options.batch_samples = 2;
  options.timeout_seconds = 5.0;
  return options;
}

TEST(HttpReward, EachSampleGetsItsReward) {
  const FakeServer server(answer_numbers);
  const auto reward = http_reward(asking(server.url("/score?kind=a")));
  std::vector<RewardSample> samples = asked_samples(5);
  samples[1].finished = false;
  samples[1].example["extra"] = "e";
  const std::vector<RewardResult> results = reward->score(samples);
  ASSERT_EQ(results.size(), 5U);
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(results[i].value, static_cast<double>(i)) << results[i].error;
  const std::vector<httplib::Request> requests = server.requests();
  ASSERT_EQ(requests.size(), 3U);  // of two samples each, and one of the rest
  for (const httplib::Request& request : requests) {
    EXPECT_EQ(request.path, "/score");
    EXPECT_EQ(request.get_param_value("kind"), "a");
    const json body = json::parse(request.body);
    if (body.at("prompts").at(0) != "p0") continue;
    EXPECT_EQ(body, json({{"prompts", {"p0", "p1"}},
                          {"completions", {"c0", "c1"}},
                          {"finished", {true, false}},
                          {"ground_truth", {0, 1}},
                          {"extra", {nullptr, "e"}}}));
  }
}

TEST(HttpReward, OpenRlhfsServersAreAskedAsTheyExpect) {
  const FakeServer server([](size_t, const json& request, httplib::Response& response) {
    EXPECT_EQ(request, json({{"query", {"p0c0", "p1c1"}}, {"prompts", {"p0", "p1"}}, {"labels", {"0", ""}}}));
    answer_json(response, {{"rewards", {0.5, nullptr}}, {"scores", {1, 1}}});
  });
  HttpSection options = asking(server.url(""));
  options.form = HttpSection::kOpenRlhf;
  std::vector<RewardSample> samples = asked_samples(2);
  samples[1].example = {{"other", 1}};
  const std::vector<RewardResult> results = http_reward(options)->score(samples);
  EXPECT_EQ(results[0].value, 0.5);
  EXPECT_FALSE(results[1].value);
  EXPECT_EQ(results[1].error, "");
}

TEST(HttpReward, ABusyOrBrokenAnswerIsAskedForAgain) {
  const FakeServer server([](size_t number, const json& request, httplib::Response& response) {
    if (number == 0) {
      response.status = 429;
      response.set_header("Retry-After", "0");
    } else if (number == 1) {
      response.set_content("{\"rewards\": [1", "application/json");
    } else if (number == 2) {  // says that more comes than does
      response.set_content_provider(1000, "application/json", [](size_t, size_t, httplib::DataSink&) { return false; });
    } else if (number == 3) {
      response.status = 500;
    } else {
      answer_numbers(number, request, response);
    }
  });
  const std::vector<RewardResult> results = http_reward(asking(server.url("/"), 5))->score(asked_samples(1));
  EXPECT_EQ(results.at(0).value, 0.0) << results[0].error;
  EXPECT_EQ(server.requests().size(), 5U);
}

TEST(HttpReward, AFailureNamesTheAddressTheTriesAndTheAnswer) {
  const FakeServer server([](size_t, const json& request, httplib::Response& response) {
    const std::string prompt = request.at("prompts").at(0);
    if (prompt == "p0") {
      response.status = 503;
      response.set_content("too\nbusy", "text/plain");
    } else if (prompt == "p1") {
      response.status = 404;
      response.set_content("nothing here", "text/plain");
    } else if (prompt == "p5") {
      response.status = 422;
      response.set_content("Field required", "text/plain");
    } else if (prompt == "p6") {
      response.status = 401;
      response.set_content("who?", "text/plain");
    } else if (prompt == "p7") {
      response.status = 307;
      response.set_header("Location", "/new");
    } else if (prompt == "p2") {
      answer_json(response, {{"rewards", {1, 2}}});
    } else if (prompt == "p3") {
      answer_json(response, {{"reward", 1}});
    } else {
      answer_json(response, {{"rewards", {"high"}}});
    }
  });
  HttpSection options = asking(server.url("/r"));
  options.batch_samples = 1;
  const std::vector<RewardResult> results = http_reward(options)->score(asked_samples(8));
  const std::string url = server.url("/r");
  EXPECT_EQ(results[0].error, url + " in 2 tries: status 503: too busy");
  EXPECT_EQ(results[1].error, url + ": status 404: nothing here; try the path at which the server scores, as /score");
  EXPECT_EQ(results[2].error, url + ": the server returned 2 rewards for 1 completions");
  EXPECT_EQ(
      results[3].error,
      url +
          ": expected {\"rewards\": [a number or null for each completion]}, got {\"reward\":1}; try a server that "
          "answers so");
  EXPECT_EQ(results[4].error,
            url + ": the server answered \"high\", expected a number or null; try a number in its place");
  EXPECT_EQ(results[5].error,
            url + ": status 422: Field required; try form: openrlhf if it is a server for OpenRLHF's requests");
  EXPECT_THAT(results[6].error, HasSubstr("status 401: who?; try key_variable: NAME in its entry, a variable of "));
  EXPECT_THAT(results[7].error, HasSubstr("status 307: ; try the address /new, as redirections are not followed"));
  for (const RewardResult& result : results) EXPECT_FALSE(result.value);
}

TEST(HttpReward, AServerThatIsNotThereFailsEachSample) {
  std::string url;
  {
    const FakeServer gone(answer_numbers);
    url = gone.url("/");
  }
  const std::vector<RewardResult> results = http_reward(asking(url))->score(asked_samples(3));
  for (const RewardResult& result : results)
    EXPECT_EQ(result.error, url +
                                " in 2 tries: nobody answers there; try starting the server, or the host and port at "
                                "which it listens");
}

TEST(HttpReward, ASlowAnswerIsEndedAndTheRunIsToldOfTheWait) {
  std::atomic<bool> over = false;
  const FakeServer server(answer_until(over));
  HttpSection options = asking(server.url("/"), 1);
  options.timeout_seconds = 0.3;
  const auto reward = http_reward(options);
  int told = 0;
  reward->on_progress([&] { ++told; });
  EXPECT_EQ(reward->score(asked_samples(1)).at(0).error,
            server.url("/") + ": no answer within 0.3 s; try a larger timeout_seconds or fewer parallel_requests");
  EXPECT_GT(told, 1);
  over = true;
}

TEST(HttpReward, AStopWhileItWaitsEndsAllRequests) {
  std::atomic<bool> over = false;
  const FakeServer server(answer_until(over));
  const auto reward = http_reward(asking(server.url("/"), 5));
  reward->on_progress([] { throw std::runtime_error("stop"); });
  EXPECT_THROW(reward->score(asked_samples(3)), std::runtime_error);
  over = true;
}

TEST(HttpReward, AKeyIsSentAndAMissingOneIsRefused) {
  const FakeServer server(answer_numbers);
  HttpSection options = asking(server.url("/"));
  options.key_variable = "COLLIMATE_TEST_REWARD_KEY";
  unsetenv("COLLIMATE_TEST_REWARD_KEY");
  EXPECT_THAT(base::message_of<base::InputError>([&] { http_reward(options); }),
              HasSubstr("[reward.key_variable] expected a variable of the environment with the server's key, got "
                        "COLLIMATE_TEST_REWARD_KEY, which is not set; try export"));
  setenv("COLLIMATE_TEST_REWARD_KEY", "secret", 1);
  EXPECT_EQ(http_reward(options)->score(asked_samples(1)).at(0).value, 0.0);
  EXPECT_EQ(server.requests().at(0).get_header_value("Authorization"), "Bearer secret");
}

TEST(HttpReward, AColumnOfTheRequestsOwnNameIsRefused) {
  const auto reward = http_reward(asking("http://127.0.0.1:1/"));
  EXPECT_THROW(reward->check_columns({{"prompts", 1}}), base::InputError);
  EXPECT_NO_THROW(reward->check_columns({{"ground_truth", 1}}));
}

TEST(HttpReward, AddressesOfAnotherFormAreRefused) {
  for (const char* url : {"http://localhost", "https://h.example:8000/a?b=c", "http://[::1]:80/x", "http://h?x=1"})
    EXPECT_EQ(url_problem(url), "") << url;
  for (const char* url : {"localhost:8000", "ftp://h/", "http://", "http://:80", "http://h:0", "http://h:65536/",
                          "http://h:99999999999999", "http://u:p@h/", "http://h/a b", "http://h/#x", "http://[::1",
                          "http://[fe80::1]:80/"})
    EXPECT_NE(url_problem(url), "") << url;
}

TEST(HttpReward, KeysOfOtherClientsAreNamedByItsOwn) {
  const auto refused = [](const char* key) {
    return base::message_of<base::InputError>([&] { read_entry<HttpSection>({{"http", "http://h/"}, {key, 1}}); });
  };
  EXPECT_THAT(refused("api_key"), HasSubstr("got \"api_key\"; try \"key_variable\": the name of a variable"));
  EXPECT_THAT(refused("max_retries"), HasSubstr("try \"tries\": the first one counts too"));
  EXPECT_THAT(refused("batch_size"), testing::EndsWith("try \"batch_samples\""));
  EXPECT_THAT(refused("timeout"), testing::EndsWith("try \"timeout_seconds\""));
}

TEST(HttpReward, WhereItRunsIsOutsideOfTheHash) {
  const json entry = {{"http", "http://a/"}, {"tries", 3}, {"timeout_seconds", 2.0}, {"batch_samples", 7}};
  EXPECT_EQ(hashed_rewards(entry), json({{"batch_samples", 7}}));
  EXPECT_FALSE(deterministic_reward(entry));
  EXPECT_EQ(make_rewards(json::array({entry, entry})).at(1).name, "http_2");
}

}  // namespace
}  // namespace collimate::rlhf
