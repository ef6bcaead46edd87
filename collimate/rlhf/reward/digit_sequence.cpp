#include <charconv>
#include <optional>
#include <string_view>

#include "collimate/base/error.h"
#include "collimate/rlhf/reward/equal_positions.h"
#include "collimate/rlhf/reward/reward_section.h"
#include "collimate/rlhf/reward/rule_text.h"
#include "collimate/rlhf/reward/rules.h"

namespace collimate::rlhf {
namespace {

using nlohmann::json;

struct DigitSequenceSection : RuleSection {
  COLLIMATE_OPTION(double, unfinished_weight, 0.9, "", "factor of the reward of a completion that was cut off");
};

// The progression that a prompt "first,second:max_number,count" asks for: `count` numbers after `second`, modulo
// max_number, each second - first more than the one before.
struct Progression {
  int64_t first = 0, second = 0, max_number = 1, count = 0;
};

// Sums of a few such numbers fit into 64 bits.
constexpr int64_t kMostNumber = int64_t{1} << 60;

std::optional<int64_t> number(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (value < -kMostNumber || value > kMostNumber) return std::nullopt;
  return value;
}

Progression parse(const std::string& prompt) {
  const std::vector<std::string_view> sides = split(prompt, ':');
  std::vector<std::optional<int64_t>> given;
  for (std::string_view side : sides)
    for (std::string_view part : split(side, ',')) given.push_back(number(part));
  const bool shaped = sides.size() == 2 && split(sides[0], ',').size() == 2 && given.size() == 4;
  if (!shaped || !given[0] || !given[1] || given[2].value_or(0) <= 0 || given[3].value_or(-1) < 0)
    throw base::InputError(
        base::expectation("reward.digit_sequence", "a prompt FIRST,SECOND:MAX,COUNT of numbers up to 2^60", prompt));
  return {*given[0], *given[1], *given[2], *given[3]};
}

Rule make_digit_sequence(const json& options) {
  const double unfinished = read_entry<DigitSequenceSection>(options).unfinished_weight;
  return [unfinished](const RewardSample& sample) {
    const Progression asked = parse(sample.prompt);
    const std::vector<std::string_view> produced = split(sample.completion, ',');
    int64_t value = asked.second;
    return equal_positions(sample, produced, static_cast<size_t>(asked.count), sample.finished ? 1.0 : unfinished,
                           [&](size_t i) {
                             value = (value + asked.second - asked.first) % asked.max_number;
                             if (value < 0) value += asked.max_number;
                             return number(produced[i]) == value;
                           });
  };
}

}  // namespace

RuleEntry digit_sequence_rule() {
  return {"digit_sequence",
          "the same for the numbers that a prompt FIRST,SECOND:MAX,N asks for: N numbers, each SECOND - FIRST more, "
          "modulo MAX",
          section_of<DigitSequenceSection>, make_digit_sequence};
}

}  // namespace collimate::rlhf
