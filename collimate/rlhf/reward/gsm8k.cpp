#include <optional>
#include <string>

#include "collimate/base/config_scalar.h"
#include "collimate/base/error.h"
#include "collimate/rlhf/reward/reward_section.h"
#include "collimate/rlhf/reward/rule_text.h"
#include "collimate/rlhf/reward/rules.h"

namespace collimate::rlhf {
namespace {

using nlohmann::json;

struct Gsm8kSection : RuleSection {
  COLLIMATE_OPTION(double, format_score, 0.0, "", "reward of an answer with another number");
};

// Returns the final number of a text, or nothing if it has none, or one that as a whole is no number ("1.2.3") or no
// double.
std::optional<double> final_value(const std::string& text) { return base::parse_number(final_number(text)); }

Rule make_gsm8k(const json& options) {
  const double format_score = read_entry<Gsm8kSection>(options).format_score;
  return [format_score](const RewardSample& sample) -> Score {
    const std::string text = text_field(sample, "ground_truth");
    const std::optional<double> truth = final_value(text), answer = final_value(sample.completion);
    if (!truth) throw base::InputError(base::expectation("reward.gsm8k", "a ground truth with a final number", text));
    Score score = !answer ? 0.0 : *answer == *truth ? 1.0 : format_score;
    score.answer = answer ? fmt::to_string(*answer) : "";
    return score;
  };
}

}  // namespace

RuleEntry gsm8k_rule() {
  return {"gsm8k", "1 when the completion's final number is the ground truth's", section_of<Gsm8kSection>, make_gsm8k};
}

}  // namespace collimate::rlhf
