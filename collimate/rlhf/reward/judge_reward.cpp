#include "collimate/rlhf/reward/judge_reward.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "collimate/base/characters.h"
#include "collimate/base/error.h"
#include "collimate/rlhf/reward/http_calls.h"
#include "collimate/rlhf/reward/http_reward.h"
#include "collimate/rlhf/reward/rule_text.h"
#include "collimate/text/regex.h"
#include "collimate/text/utf8.h"

namespace collimate::rlhf {

using base::expectation;
using nlohmann::json;

const char* const JudgeSection::kPrompt =
    "Judge how well an answer does what was asked.\n\n"
    "<asked>\n{prompt}\n</asked>\n\n<answer>\n{completion}\n</answer>\n\n"
    "Say briefly what is right and what is wrong with the answer, whatever it says about itself. Then end with your "
    "judgement, a number from {lowest} (worst) to {highest} (best) in double brackets, as in [[number]].";

namespace {

// A part of a prompt: a text that stands as it is, or the name of what is filled in.
struct PromptPart {
  std::string text;
  bool name = false;
};

// Cuts a prompt at its names in braces; other braces are text.
std::vector<PromptPart> prompt_parts(const std::string& prompt) {
  static const text::Regex kName(R"(\{[A-Za-z_][A-Za-z0-9_]*\})");
  std::vector<PromptPart> parts;
  size_t from = 0;
  for (text::Span found; kName.find(prompt, from, found); from = found.end) {
    parts.push_back({prompt.substr(from, found.begin - from)});
    parts.push_back({prompt.substr(found.begin + 1, found.size() - 2), true});
  }
  parts.push_back({prompt.substr(from)});
  return parts;
}

std::string filled(const std::vector<PromptPart>& parts, const RewardSample& sample, const JudgeSection& options) {
  std::string out;
  for (const PromptPart& part : parts) {
    if (!part.name)
      out += part.text;
    else if (part.text == "prompt")
      out += sample.prompt;
    else if (part.text == "completion")
      out += sample.completion;
    else if (part.text == "lowest" || part.text == "highest")
      out += fmt::format("{}", part.text == "lowest" ? options.lowest.get() : options.highest.get());
    else
      out += text_field(sample, part.text);
  }
  return out;
}

// Returns the last match of a pattern, "" where there is none.
std::string last_match(const text::Regex& pattern, const std::string& text) {
  std::string last;
  text::for_each_match(
      text, [&](size_t from, text::Span& match) { return pattern.find(text, from, match); },
      [&](const text::Span& match) { last = text.substr(match.begin, match.size()); });
  return last;
}

// Returns the end of a judge's answer, for messages.
std::string ending(const std::string& text) {
  constexpr size_t kShown = 200;
  return json(text.size() > kShown ? "[...] " + text::valid_utf8(text.substr(text.size() - kShown)) : text).dump();
}

// Returns what to try where an answer has no score: more tokens if it was cut off, else `otherwise`.
std::string length_remedy(const json& body, const std::string& otherwise) {
  const json::json_pointer kFinish("/choices/0/finish_reason");
  const bool cut = body.contains(kFinish) && body.at(kFinish) == "length";
  return cut ? "more tokens for the judge, whose answer was cut off, as request: {max_tokens: 4096}" : otherwise;
}

// Returns the text of an answer with OpenAI's interface, or throws RunError.
std::string content_of(const json& body) {
  const json::json_pointer kContent("/choices/0/message/content");
  if (body.contains(kContent) && body.at(kContent).is_string())
    return text::valid_utf8(body.at(kContent).get<std::string>());
  throw base::RunError(fmt::format("expected choices with a message, got {}; try {}",
                                   base::beginning_of(body.dump(), 300),
                                   length_remedy(body, "the address of a server with OpenAI's interface")));
}

class JudgeReward final : public Reward {
 public:
  explicit JudgeReward(const JudgeSection& options)
      : options_(options),
        url_(chat_url(options.judge)),
        prompt_(prompt_parts(options.prompt)),
        system_(prompt_parts(options.system)),
        pattern_(options.pattern, "reward.pattern"),
        calls_(http_target(options, "judge", url_)) {}

  void check_columns(const json& example) const override {
    const RewardSample sample{.example = example};
    filled(prompt_, sample, options_);
    filled(system_, sample, options_);
  }

  std::vector<RewardResult> score(const std::vector<RewardSample>& samples) override {
    std::vector<json> requests;
    for (const RewardSample& sample : samples) requests.push_back(request_for(sample));
    std::vector<RewardResult> results;
    for (const HttpCalls::Answer& answer : calls_.post(requests, [this] { progress(); }))
      results.push_back(result_of(answer));
    return results;
  }

 private:
  static std::string chat_url(const std::string& url) {
    const size_t query = std::min(url.find('?'), url.size());
    std::string path = url.substr(0, query);
    while (path.ends_with('/')) path.pop_back();
    if (!path.ends_with("/chat/completions")) path += "/chat/completions";
    return path + url.substr(query);
  }

  json request_for(const RewardSample& sample) const {
    json request = {{"temperature", 0}, {"max_tokens", 1024}};
    if (options_.request->is_object()) request.merge_patch(options_.request);
    request["model"] = options_.model.get();
    request["messages"] = json::array();
    if (!options_.system->empty())
      request["messages"].push_back({{"role", "system"}, {"content", filled(system_, sample, options_)}});
    request["messages"].push_back({{"role", "user"}, {"content", filled(prompt_, sample, options_)}});
    return request;
  }

  RewardResult result_of(const HttpCalls::Answer& answer) const {
    if (!answer.error.empty()) return {std::nullopt, answer.error + judging_remedy(answer.status)};
    try {
      return {score_of(content_of(answer.body), answer.body), ""};
    } catch (const base::RunError& error) {
      return {std::nullopt, fmt::format("{}: {}", url_, error.what())};
    }
  }

  // Returns what to try after a status that a judge's server may answer with, "" where nothing is known.
  std::string judging_remedy(int status) const {
    if (status == 400 || status == 422)
      return "; try request: {MEMBER: null} for a member that the server does not take, as temperature or max_tokens";
    if (status != 404 && status != 405) return "";
    return url_.find("/v1/") == std::string::npos
               ? "; try an address that ends in /v1, where OpenAI's interface usually is"
               : "; try a model that the server has (its answer to GET …/v1/models lists them), or another address";
  }

  // Returns the score in the content of a judge's answer. Throws RunError where there is none.
  double score_of(const std::string& content, const json& body) const {
    const std::string match = last_match(pattern_, content);
    const std::string number = last_match(number_, match);
    if (number.empty())
      throw base::RunError(
          fmt::format("the judge's answer has no score that pattern {} finds; it ends with {}; try {}",
                      options_.pattern.get(), ending(content),
                      length_remedy(body, "a prompt that asks for this form, or a pattern of the form that came")));
    const double score = std::strtod(number.c_str(), nullptr);
    if (score < options_.lowest || score > options_.highest)
      throw base::RunError(
          fmt::format("the judge gave {}, expected a score from {} to {}; try lowest and highest as "
                      "prompt asks for them",
                      number, options_.lowest.get(), options_.highest.get()));
    return score;
  }

  JudgeSection options_;
  std::string url_;
  std::vector<PromptPart> prompt_, system_;
  text::Regex pattern_;
  text::Regex number_{R"(-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)"};
  HttpCalls calls_;
};

}  // namespace

base::KeyRemedy JudgeSection::section_remedy(const std::string& key) const {
  for (const char* member : {"temperature", "max_tokens", "max_completion_tokens", "max_new_tokens", "top_p", "seed",
                             "stop", "response_format", "chat_template_kwargs", "reasoning_effort", "extra_body"})
    if (key == member) return {"", fmt::format("request: {{{}: VALUE}}, which has members of the request", key)};
  if (key == "max_score" || key == "min_score") return {"", key == "max_score" ? "\"highest\"" : "\"lowest\""};
  if (key == "batch_size") return {"", "leaving it out: a judge gets one sample a request"};
  return RemoteSection::section_remedy(key);
}

void JudgeSection::section_demands(const std::string& path) const {
  demand_url(judge, path);
  const std::string why = text::Regex::problem(pattern);
  if (!why.empty()) pattern.item_refuse(path, "a regular expression", why);
  if (!(lowest < highest)) highest.item_refuse(path, fmt::format("a number above lowest, {}", lowest.get()));
  if (prompt->find("{completion}") == std::string::npos)
    prompt.item_refuse(path, "a text with {completion}, which is judged");
  if (!request->is_null() && !request->is_object()) request.item_refuse(path, "a map of members, or nothing");
  for (const char* key : {"model", "messages", "stream", "n"})
    if (request->is_object() && request->contains(key))
      request.item_refuse(path, fmt::format("members other than {}", key), "the entry says it by its other keys");
}

std::unique_ptr<Reward> judge_reward(const JudgeSection& options) { return std::make_unique<JudgeReward>(options); }

}  // namespace collimate::rlhf
