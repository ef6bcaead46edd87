#include "collimate/rlhf/reward/python_answer.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/base/log.h"
#include "collimate/text/utf8.h"

namespace collimate::rlhf {
namespace {

using nlohmann::json;

// Returns the text in quotes on one line, or the beginning and the end of a long text.
std::string quoted(const std::string& text) {
  constexpr size_t kShown = 300;  // bytes of the beginning and of the end
  if (text.size() <= 2 * kShown) return json(text).dump();
  return json(text::valid_utf8(text.substr(0, kShown)) + " [...] " +
              text::valid_utf8(text.substr(text.size() - kShown)))
      .dump();
}

std::string shown(const RewardSample& sample) {
  return fmt::format("prompt: {}\ncompletion: {}", quoted(sample.prompt), quoted(sample.completion));
}

std::vector<StepReward> steps_of(const json& result) {
  std::vector<StepReward> steps;
  for (const json& step : result.value("steps", json::array()))
    steps.push_back({step.at(0).get<size_t>(), step.at(1).get<double>()});
  return steps;
}

std::optional<std::string> answer_of(const json& result) {
  if (!result.contains("answer")) return std::nullopt;
  return result.at("answer").get<std::string>();
}

}  // namespace

json python_request(std::span<const RewardSample> samples) {
  json list = json::array();
  for (const RewardSample& sample : samples)
    list.push_back({{"prompt", sample.prompt},
                    {"completion", sample.completion},
                    {"finished", sample.finished},
                    {"example", sample.example}});
  return {{"samples", std::move(list)}};
}

PythonAnswer parse_python_answer(const json& answer) {
  PythonAnswer out{.batch_trace = answer.at("batch_trace")};
  for (const json& one : answer.at("results")) {
    if (one.at("value").is_number()) {
      out.results.push_back({one.at("value").get<double>(), "", steps_of(one), answer_of(one)});
    } else {
      if (out.trace.empty()) {
        out.raised = out.results.size();
        out.trace = one.value("trace", "");
      }
      out.results.push_back({std::nullopt, one.at("error").get<std::string>()});
    }
  }
  return out;
}

void refuse_reserved(const std::vector<std::string>& reserved, const std::string& function, const json& example) {
  for (const std::string& name : reserved)
    if (example.contains(name))
      throw base::InputError(base::expectation(
          "reward.python", fmt::format("no data column of the name of an argument that {} has", function),
          "\"" + name + "\"", fmt::format("another name for it in data.columns: {{{}: new_name}}", name)));
}

void PythonWarnings::tell(const PythonAnswer& answer, std::span<const RewardSample> asked,
                          const Reward::Raised& instead) {
  const bool alone = !answer.trace.empty() && answer.raised < asked.size();
  if (!alone && answer.batch_trace.empty()) return;
  const RewardSample& sample = alone ? base::at(asked, answer.raised) : asked.front();
  if (instead) {
    instead((alone ? answer.trace : answer.batch_trace) + shown(sample));
  } else if (alone) {
    tell_raise(sample, answer.trace, !answer.batch_trace.empty());
  } else {
    tell_batch(answer.batch_trace, asked);
  }
}

// Warns, as a function that compares the samples of a call gives other values when it is asked for each alone.
void PythonWarnings::tell_batch(const std::string& trace, std::span<const RewardSample> asked) {
  if (std::exchange(batch_told_, true)) return;
  base::log().write_once(
      base::LogLevel::kWarning, function_ + trace,
      fmt::format(
          "reward.python: {} raised on {} samples in one call and on none of them alone; they were asked one by one.\n"
          "{}{}\n(the first of the {})",
          function_, asked.size(), trace, shown(asked.front()), asked.size()));
}

void PythonWarnings::tell_raise(const RewardSample& sample, const std::string& trace, bool one_by_one) {
  if (std::exchange(raise_told_, true)) return;
  base::log().write_once(
      base::LogLevel::kWarning, function_ + trace,
      fmt::format("reward.python: {} raised an exception; further ones are counted and not shown{}.\n{}{}", function_,
                  one_by_one ? ", and after one the function is called again for each sample alone" : "", trace,
                  shown(sample)));
}

}  // namespace collimate::rlhf
