#include "collimate/rlhf/reward/rules.h"

#include <algorithm>
#include <cmath>
#include <regex>

#include "collimate/base/config.h"
#include "collimate/base/error.h"
#include "collimate/rlhf/reward/reward_section.h"
#include "collimate/rlhf/reward/rule_text.h"

namespace collimate::rlhf {
namespace {

using base::Option;
using nlohmann::json;

// The keys of each rule's entry.
struct Gsm8kSection : RuleSection {
  Option<double> format_score{this, "format_score", 0.0, "", "of an answer with another number"};
};
struct CountdownSection : RuleSection {
  Option<double> format_score{this, "format_score", 0.1, "", "of an answer in its place that is wrong"};
};
struct ExactSection : RuleSection {
  Option<std::string> field{this, "field", "ground_truth", "", "column to compare with"};
  Option<bool> strip{this, "strip", true, "", "white space at both ends does not count"};
};
struct RegexSection : RuleSection {
  Option<std::string> pattern{this, "pattern", "", "", "ECMAScript regular expression"};
};

// The text of the last <answer>…</answer>, or nothing.
std::optional<std::string> answer_of(const std::string& text) {
  const size_t begin = text.rfind("<answer>");
  const size_t end = text.find("</answer>", begin == std::string::npos ? 0 : begin);
  if (begin == std::string::npos || end == std::string::npos) return std::nullopt;
  return std::string(stripped(std::string_view(text).substr(begin + 8, end - begin - 8)));
}

}  // namespace

std::string final_number(const std::string& text) {
  const size_t marker = text.rfind("####");
  const std::string tail = marker == std::string::npos ? text : text.substr(marker + 4);
  std::string best;
  for (size_t i = 0; i < tail.size();) {
    const bool sign =
        tail[i] == '-' && i + 1 < tail.size() && std::isdigit(static_cast<unsigned char>(tail[i + 1])) != 0;
    if (!sign && std::isdigit(static_cast<unsigned char>(tail[i])) == 0) {
      ++i;
      continue;
    }
    std::string number(1, tail[i++]);
    while (i < tail.size() &&
           (std::isdigit(static_cast<unsigned char>(tail[i])) != 0 || tail[i] == ',' || tail[i] == '.'))
      number += tail[i++];
    std::erase(number, ',');
    while (number.ends_with('.')) number.pop_back();
    best = number;
    if (marker != std::string::npos) break;
  }
  return best;
}

Rule gsm8k_rule(const json& options) {
  const double format_score = read_rule<Gsm8kSection>(options).format_score;
  return [format_score](const RewardSample& sample) {
    const std::string text = text_field(sample, "ground_truth");
    const std::string truth = final_number(text), answer = final_number(sample.completion);
    if (truth.empty()) throw base::InputError(base::expectation("reward.gsm8k", "a ground truth with a number", text));
    if (answer.empty()) return 0.0;
    return std::stod(answer) == std::stod(truth) ? 1.0 : format_score;
  };
}

namespace {

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

}  // namespace

Rule countdown_rule(const json& options) {
  const double format_score = read_rule<CountdownSection>(options).format_score;
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

Rule exact_rule(const json& options) {
  const auto section = read_rule<ExactSection>(options);
  return [field = section.field.get(), strip = section.strip.get()](const RewardSample& sample) {
    const std::string truth = text_field(sample, field);
    return (strip ? stripped(sample.completion) == stripped(truth) : sample.completion == truth) ? 1.0 : 0.0;
  };
}

Rule regex_rule(const json& options) {
  const std::string pattern = read_rule<RegexSection>(options).pattern;
  if (pattern.empty()) throw base::InputError(base::expectation("reward.regex", "a `pattern`", "none"));
  try {
    return [expression = std::regex(pattern)](const RewardSample& sample) {
      return std::regex_search(sample.completion, expression) ? 1.0 : 0.0;
    };
  } catch (const std::regex_error& error) {
    throw base::InputError(base::expectation("reward.regex", "an ECMAScript regular expression",
                                             fmt::format("\"{}\" ({})", pattern, error.what())));
  }
}

const std::vector<std::pair<std::string, MakeRule>>& rules() {
  static const std::vector<std::pair<std::string, MakeRule>> list = {
      {"gsm8k", gsm8k_rule}, {"countdown", countdown_rule}, {"exact", exact_rule},
      {"regex", regex_rule}, {"sequence", sequence_rule},   {"digit_sequence", digit_sequence_rule}};
  return list;
}

}  // namespace collimate::rlhf
