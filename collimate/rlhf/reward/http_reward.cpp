#include "collimate/rlhf/reward/http_reward.h"

#include <algorithm>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "collimate/base/characters.h"
#include "collimate/base/error.h"
#include "collimate/host/environment.h"
#include "collimate/rlhf/reward/rule_text.h"

namespace collimate::rlhf {
namespace {

using base::expectation;
using nlohmann::json;

// Returns {"prompts", "completions", "finished"} and each column that a row of these has, null in the others.
json columns_request(std::span<const RewardSample> samples) {
  json request = {{"prompts", json::array()}, {"completions", json::array()}, {"finished", json::array()}};
  std::set<std::string> columns;
  for (const RewardSample& sample : samples) {
    request["prompts"].push_back(sample.prompt);
    request["completions"].push_back(sample.completion);
    request["finished"].push_back(sample.finished);
    for (const auto& [name, value] : sample.example.items()) columns.insert(name);
  }
  for (const std::string& name : columns)
    for (const RewardSample& sample : samples) request[name].push_back(sample.example.value(name, json()));
  return request;
}

// Returns {"query", "prompts", "labels"}: OpenRLHF sends prompt and completion as one text, and the row's label, ""
// where there is none (openrlhf/utils/remote_rm_utils.py of OpenRLHF 0.8).
json openrlhf_request(std::span<const RewardSample> samples) {
  json request = {{"query", json::array()}, {"prompts", json::array()}, {"labels", json::array()}};
  for (const RewardSample& sample : samples) {
    request["query"].push_back(sample.prompt + sample.completion);
    request["prompts"].push_back(sample.prompt);
    const bool labelled = !sample.example.value("ground_truth", json()).is_null();
    request["labels"].push_back(labelled ? text_field(sample, "ground_truth") : "");
  }
  return request;
}

RewardResult result_of(const json& reward, const std::string& url) {
  if (reward.is_number()) return {reward.get<double>(), ""};
  if (reward.is_null()) return {std::nullopt, ""};
  return {std::nullopt, fmt::format("{}: the server answered {}, expected a number or null; try a number in its place",
                                    url, reward.dump())};
}

// Returns what to try after a status that depends on how a server is asked, "" where nothing is known.
std::string scoring_remedy(int status, const HttpSection& options) {
  if (status == 404 || status == 405) return "; try the path at which the server scores, as /score";
  if (status != 400 && status != 422) return "";
  return options.form == HttpSection::kColumns ? "; try form: openrlhf if it is a server for OpenRLHF's requests"
                                               : "; try no form if the server reads lists of prompts and completions";
}

// Returns the rewards of `count` samples from an answer.
std::vector<RewardResult> results_of(const HttpCalls::Answer& answer, const HttpSection& options, size_t count) {
  const std::string& url = options.http;
  const auto failed = [count](std::string error) {
    return std::vector<RewardResult>(count, RewardResult{std::nullopt, std::move(error)});
  };
  if (!answer.error.empty()) return failed(answer.error + scoring_remedy(answer.status, options));
  if (!answer.body.is_object() || !answer.body.contains("rewards") || !answer.body.at("rewards").is_array())
    return failed(
        fmt::format("{}: expected {{\"rewards\": [a number or null for each completion]}}, got {}; try a server "
                    "that answers so",
                    url, base::beginning_of(answer.body.dump(), 300)));
  const json& rewards = answer.body.at("rewards");
  if (rewards.size() != count)
    return failed(fmt::format("{}: the server returned {} rewards for {} completions", url, rewards.size(), count));
  std::vector<RewardResult> results;
  for (const json& reward : rewards) results.push_back(result_of(reward, url));
  return results;
}

class HttpReward final : public Reward {
 public:
  explicit HttpReward(const HttpSection& options)
      : options_(options), calls_(http_target(options, "http", options.http)) {}

  bool judges_together() const override { return true; }

  void check_columns(const json& example) const override {
    if (options_.form != HttpSection::kColumns) return;
    for (const char* own : {"prompts", "completions", "finished"})
      if (example.contains(own))
        throw base::InputError(expectation("reward.http", "no data column of the name of a list that each request has",
                                           fmt::format("\"{}\"", own),
                                           fmt::format("another name for it in data.columns: {{{}: new_name}}", own)));
  }

  std::vector<RewardResult> score(const std::vector<RewardSample>& samples) override {
    for (const RewardSample& sample : samples) check_columns(sample.example);
    const auto request = options_.form == HttpSection::kColumns ? columns_request : openrlhf_request;
    std::vector<std::span<const RewardSample>> parts;
    for (std::span<const RewardSample> left = samples; !left.empty(); left = left.subspan(parts.back().size()))
      parts.push_back(left.first(std::min(left.size(), static_cast<size_t>(options_.batch_samples.get()))));
    std::vector<json> requests;
    for (const auto& part : parts) requests.push_back(request(part));
    const std::vector<HttpCalls::Answer> answers = calls_.post(requests, [this] { progress(); });
    std::vector<RewardResult> results;
    for (size_t i = 0; i < parts.size(); ++i)
      for (RewardResult& result : results_of(answers[i], options_, parts[i].size()))
        results.push_back(std::move(result));
    return results;
  }

 private:
  HttpSection options_;
  HttpCalls calls_;
};

}  // namespace

HttpTarget http_target(const RemoteSection& options, const std::string& kind, const std::string& url) {
  const std::string& variable = options.key_variable;
  const std::string key = variable.empty() ? "" : host::environment_variable(variable.c_str());
  if (!variable.empty() && key.empty())
    throw base::InputError(expectation("reward.key_variable", "a variable of the environment with the server's key",
                                       fmt::format("{}, which is not set", variable),
                                       fmt::format("export {}=KEY, or no key_variable beside {}", variable, kind)));
  return {.url = url,
          .bearer = key,
          .timeout_seconds = options.timeout_seconds,
          .tries = options.tries,
          .parallel = options.parallel_requests};
}

void demand_url(const base::Option<std::string>& url, const std::string& path) {
  const std::string expected = url_problem(url);
  if (!expected.empty()) url.item_refuse(path, expected);
}

base::KeyRemedy RemoteSection::section_remedy(const std::string& key) const {
  struct Word {
    std::string_view word, key, note;
  };
  constexpr Word kWords[] = {
      {"key", "key_variable", ": the name of a variable of the environment, as the config holds no secret"},
      {"api_key", "key_variable", ": the name of a variable of the environment, as the config holds no secret"},
      {"token", "key_variable", ": the name of a variable of the environment, as the config holds no secret"},
      {"headers", "key_variable", ": its key is sent as Authorization: Bearer, and no other header is"},
      {"retries", "tries", ": the first one counts too"},
      {"max_retries", "tries", ": the first one counts too"},
      {"concurrency", "parallel_requests", ""},
      {"max_concurrency", "parallel_requests", ""},
      {"batch_size", "batch_samples", ""}};
  for (const Word& known : kWords)
    if (key == known.word) return {"", fmt::format("\"{}\"{}", known.key, known.note)};
  return {};
}

void HttpSection::section_demands(const std::string& path) const { demand_url(http, path); }

std::unique_ptr<Reward> http_reward(const HttpSection& options) { return std::make_unique<HttpReward>(options); }

}  // namespace collimate::rlhf
