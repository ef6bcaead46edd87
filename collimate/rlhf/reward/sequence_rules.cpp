#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "collimate/base/error.h"
#include "collimate/rlhf/reward/reward_section.h"
#include "collimate/rlhf/reward/rule_text.h"
#include "collimate/rlhf/reward/rules.h"

namespace collimate::rlhf {
namespace {

// Both: positions that equal the wanted ones ÷ max(N, produced). Their steps are the parts: each adds what it changes
// in the reward up to it.

struct SequenceSection : RuleSection {
  base::Option<std::string> separator{this, "separator", ",", "", "one character"};
  base::Option<std::string> end{this, "end", "", "", "what ends a complete sequence"};
  base::Option<double> unfinished_weight{this, "unfinished_weight", 0.9, "", "factor without that end"};
};

struct DigitSequenceSection : RuleSection {
  base::Option<double> unfinished_weight{this, "unfinished_weight", 0.9, "", "factor of a completion that was cut off"};
};

// "first,second:max_number,N" asks for a progression; the last number given is second.
struct Progression {
  int64_t first = 0, second = 0, max_number = 1, count = 0;
};

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

// Equal positions ÷ max(count, produced), 1 where nothing was wanted or made; `right(i)` says whether part i < count
// is. Its steps are the parts, views of the sample's completion: each adds what it changes in the score up to it.
template <class Right>
Score equal_positions(const RewardSample& sample, const std::vector<std::string_view>& produced, size_t count,
                      double weight, Right right) {
  std::vector<StepReward> steps;
  double score = produced.empty() && count == 0 ? 1.0 : 0.0;
  size_t equal = 0;
  for (size_t i = 0; i < produced.size(); ++i) {
    equal += i < count && right(i) ? 1 : 0;
    const double before =
        std::exchange(score, static_cast<double>(equal) / static_cast<double>(std::max(count, i + 1)));
    steps.push_back({static_cast<size_t>(produced[i].end() - sample.completion.data()), score - before});
  }
  return {score * weight, std::move(steps)};
}

Rule make_sequence(const nlohmann::json& entry) {
  const auto section = read_entry<SequenceSection>(entry);
  const std::string separator = section.separator;
  if (separator.size() != 1)
    throw base::InputError(base::expectation("reward.sequence.separator", "one character", separator));
  return
      [separator, end = section.end.get(), unfinished = section.unfinished_weight.get()](const RewardSample& sample) {
        const std::string truth = text_field(sample, "ground_truth");
        const std::vector<std::string_view> wanted = split(stripped(truth), separator[0]);
        std::string_view text = stripped(sample.completion);
        const bool finished = end.empty() || text.ends_with(end);
        if (finished) text = stripped(text.substr(0, text.size() - end.size()));
        const std::vector<std::string_view> produced = split(text, separator[0]);
        return equal_positions(sample, produced, wanted.size(), finished ? 1.0 : unfinished,
                               [&](size_t i) { return stripped(produced[i]) == stripped(wanted[i]); });
      };
}

Rule make_digit_sequence(const nlohmann::json& entry) {
  const double unfinished = read_entry<DigitSequenceSection>(entry).unfinished_weight;
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

RuleEntry sequence_rule() {
  return {"sequence", "equal positions of a list in the column ground_truth", section_of<SequenceSection>,
          make_sequence};
}

RuleEntry digit_sequence_rule() {
  return {"digit_sequence", "the same for a prompt FIRST,SECOND:MAX,N: N numbers, each SECOND - FIRST more, modulo MAX",
          section_of<DigitSequenceSection>, make_digit_sequence};
}

}  // namespace collimate::rlhf
