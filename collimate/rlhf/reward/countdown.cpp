#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "collimate/base/error.h"
#include "collimate/base/stripped.h"
#include "collimate/rlhf/reward/reward_section.h"
#include "collimate/rlhf/reward/rule_text.h"
#include "collimate/rlhf/reward/rules.h"

namespace collimate::rlhf {
namespace {

using nlohmann::json;

struct CountdownSection : RuleSection {
  COLLIMATE_OPTION(double, format_score, 0.1, "", "reward of a wrong answer in the right place");
};

// The text of the last complete <answer>…</answer>, each read from its first <answer> on, or nothing.
std::optional<std::string> last_answer(const std::string& text) {
  constexpr std::string_view kOpen = "<answer>", kClose = "</answer>";
  std::optional<std::string> last;
  for (size_t begin = text.find(kOpen); begin != std::string::npos; begin = text.find(kOpen, begin)) {
    const size_t inner = begin + kOpen.size();
    const size_t end = text.find(kClose, inner);
    if (end == std::string::npos) break;
    last = base::stripped(std::string_view(text).substr(inner, end - inner));
    begin = end + kClose.size();
  }
  return last;
}

// Each run of digits: TinyZero takes them for the numbers used, so 4.5 uses 4 and 5. Ascending.
std::vector<double> numbers_used(const std::string& formula) {
  constexpr const char* kDigits = "0123456789";
  std::vector<double> used;
  for (size_t begin = formula.find_first_of(kDigits); begin != std::string::npos;) {
    const size_t end = std::min(formula.find_first_not_of(kDigits, begin), formula.size());
    used.push_back(std::strtod(formula.substr(begin, end - begin).c_str(), nullptr));
    begin = formula.find_first_of(kDigits, end);
  }
  std::sort(used.begin(), used.end());
  return used;
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

Rule make_countdown(const json& options) {
  const double format_score = read_entry<CountdownSection>(options).format_score;
  return [format_score](const RewardSample& sample) {
    const Countdown asked = countdown_of(sample);
    const std::optional<std::string> answer = last_answer(sample.completion);
    if (!answer) return 0.0;
    if (numbers_used(*answer) != asked.numbers) return format_score;
    try {
      return std::abs(evaluate_arithmetic(*answer) - asked.target) < 1e-5 ? 1.0 : format_score;
    } catch (const base::InputError&) {
      return format_score;  // an answer in the right place that is no formula: TinyZero's format score
    }
  };
}

}  // namespace

RuleEntry countdown_rule() {
  return {
      "countdown",
      "1 when the last <answer>…</answer> uses each number once and gives the target (as in TinyZero, but on any line)",
      section_of<CountdownSection>, make_countdown};
}

}  // namespace collimate::rlhf
