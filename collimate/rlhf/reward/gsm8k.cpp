#include <string>

#include "collimate/base/error.h"
#include "collimate/rlhf/reward/reward_section.h"
#include "collimate/rlhf/reward/rule_text.h"
#include "collimate/rlhf/reward/rules.h"

namespace collimate::rlhf {
namespace {

using base::Option;
using nlohmann::json;

struct Gsm8kSection : RuleSection {
  Option<double> format_score{this, "format_score", 0.0, "", "of an answer with another number"};
};

Rule make(const json& options) {
  const double format_score = read_rule<Gsm8kSection>(options).format_score;
  return [format_score](const RewardSample& sample) {
    const std::string text = text_field(sample, "ground_truth");
    const std::string truth = final_number(text), answer = final_number(sample.completion);
    if (truth.empty()) throw base::InputError(base::expectation("reward.gsm8k", "a ground truth with a number", text));
    if (answer.empty()) return 0.0;
    return std::stod(answer) == std::stod(truth) ? 1.0 : format_score;
  };
}

}  // namespace

RuleEntry gsm8k_rule() {
  return {"gsm8k", "1 when the completion's final number is the ground truth's", section_of<Gsm8kSection>, make};
}

}  // namespace collimate::rlhf
