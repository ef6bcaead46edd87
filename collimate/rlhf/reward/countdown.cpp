#include <algorithm>
#include <cmath>
#include <optional>

#include "collimate/base/error.h"
#include "collimate/rlhf/reward/reward_section.h"
#include "collimate/rlhf/reward/rule_text.h"
#include "collimate/rlhf/reward/rules.h"

namespace collimate::rlhf {
namespace {

using base::Option;
using nlohmann::json;

struct CountdownSection : RuleSection {
  Option<double> format_score{this, "format_score", 0.1, "", "of an answer in its place that is wrong"};
};

// The text of the last <answer>…</answer>, or nothing.
std::optional<std::string> answer_of(const std::string& text) {
  const size_t begin = text.rfind("<answer>");
  const size_t end = text.find("</answer>", begin == std::string::npos ? 0 : begin);
  if (begin == std::string::npos || end == std::string::npos) return std::nullopt;
  return std::string(stripped(std::string_view(text).substr(begin + 8, end - begin - 8)));
}

struct Countdown {
  std::vector<double> numbers;  // ascending
  double target = 0;
};

Countdown countdown_of(const RewardSample& sample) {
  const std::string text = text_field(sample, "ground_truth");
  const json truth = json::parse(text, nullptr, false);
  const bool shaped = truth.is_object() && truth.contains("numbers") && truth.contains("target") &&
                      truth.at("numbers").is_array() && truth.at("target").is_number();
  if (!shaped) throw base::InputError(base::expectation("reward.countdown", "a ground truth {numbers, target}", text));
  Countdown asked{truth.at("numbers").get<std::vector<double>>(), truth.at("target").get<double>()};
  std::sort(asked.numbers.begin(), asked.numbers.end());
  return asked;
}

Rule make(const json& options) {
  const double format_score = read_entry<CountdownSection>(options).format_score;
  return [format_score](const RewardSample& sample) {
    const Countdown asked = countdown_of(sample);
    const std::optional<std::string> answer = answer_of(sample.completion);
    if (!answer) return 0.0;
    std::vector<double> used;
    double value = 0;
    try {
      value = evaluate_arithmetic(*answer, used);
    } catch (const base::InputError&) {
      return format_score;  // an answer in the right place that is no formula: TinyZero's format score
    }
    std::sort(used.begin(), used.end());
    return asked.numbers == used && std::abs(value - asked.target) < 1e-5 ? 1.0 : format_score;
  };
}

}  // namespace

RuleEntry countdown_rule() {
  return {"countdown", "1 when <answer> uses each number once and hits the target (TinyZero)",
          section_of<CountdownSection>, make};
}

}  // namespace collimate::rlhf
