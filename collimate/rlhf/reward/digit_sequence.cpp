#include <charconv>
#include <string_view>

#include "collimate/base/error.h"
#include "collimate/rlhf/reward/reward_section.h"
#include "collimate/rlhf/reward/rules.h"

namespace collimate::rlhf {
namespace {

struct DigitSequenceSection : RuleSection {
  base::Option<double> unfinished_weight{this, "unfinished_weight", 0.9, "", "factor of a completion that was cut off"};
};

// What "first,second:max_number,N" asks for; the last number given is second.
struct Progression {
  int64_t first = 0, second = 0, max_number = 1, count = 0;
};

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  if (text.empty()) return parts;
  for (size_t end = text.find(separator); end != std::string_view::npos; end = text.find(separator)) {
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  parts.push_back(text);
  return parts;
}

std::optional<int64_t> number(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Progression parse(const std::string& prompt) {
  const std::vector<std::string_view> sides = split(prompt, ':');
  std::vector<std::optional<int64_t>> given;
  for (std::string_view side : sides)
    for (std::string_view part : split(side, ',')) given.push_back(number(part));
  const bool shaped = sides.size() == 2 && split(sides[0], ',').size() == 2 && given.size() == 4;
  if (!shaped || !given[0] || !given[1] || given[2].value_or(0) <= 0 || given[3].value_or(-1) < 0)
    throw base::InputError(base::expectation("reward.digit_sequence", "a prompt FIRST,SECOND:MAX,COUNT", prompt));
  return {*given[0], *given[1], *given[2], *given[3]};
}

}  // namespace

Rule digit_sequence_rule(const nlohmann::json& options) {
  const double unfinished = read_rule<DigitSequenceSection>(options).unfinished_weight;
  return [unfinished](const RewardSample& sample) {
    const Progression asked = parse(sample.prompt);
    const std::vector<std::string_view> produced = split(sample.completion, ',');
    int64_t value = asked.second, equal = 0;
    const auto made = static_cast<int64_t>(produced.size());
    for (int64_t i = 0; i < std::min(asked.count, made); ++i) {
      value = (value + asked.second - asked.first) % asked.max_number;
      if (value < 0) value += asked.max_number;
      equal += number(produced[static_cast<size_t>(i)]) == value ? 1 : 0;
    }
    const int64_t longest = std::max(asked.count, made);
    const double score = longest == 0 ? 1.0 : static_cast<double>(equal) / static_cast<double>(longest);
    return sample.finished ? score : score * unfinished;
  };
}

}  // namespace collimate::rlhf
