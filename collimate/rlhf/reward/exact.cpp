#include "collimate/base/stripped.h"
#include "collimate/rlhf/reward/reward_section.h"
#include "collimate/rlhf/reward/rule_text.h"
#include "collimate/rlhf/reward/rules.h"

namespace collimate::rlhf {
namespace {

using nlohmann::json;

struct ExactSection : RuleSection {
  COLLIMATE_OPTION(std::string, field, "ground_truth", "", "column to compare with");
  COLLIMATE_OPTION(bool, strip, true, "", "ignore white space at both ends");
};

Rule make_exact(const json& options) {
  const auto section = read_entry<ExactSection>(options);
  return [field = section.field.get(), strip = section.strip.get()](const RewardSample& sample) {
    const std::string truth = text_field(sample, field);
    return (strip ? base::stripped(sample.completion) == base::stripped(truth) : sample.completion == truth) ? 1.0
                                                                                                             : 0.0;
  };
}

}  // namespace

RuleEntry exact_rule() {
  return {"exact", "1 when the completion equals a column", section_of<ExactSection>, make_exact};
}

}  // namespace collimate::rlhf
