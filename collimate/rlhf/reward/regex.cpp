#include <regex>

#include "collimate/base/error.h"
#include "collimate/rlhf/reward/reward_section.h"
#include "collimate/rlhf/reward/rule_text.h"
#include "collimate/rlhf/reward/rules.h"

namespace collimate::rlhf {
namespace {

using base::Option;
using nlohmann::json;

struct RegexSection : RuleSection {
  Option<std::string> pattern{this, "pattern", "", "", "ECMAScript regular expression"};
};

Rule make(const json& options) {
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

}  // namespace

RuleEntry regex_rule() { return {"regex", "1 when the pattern is found", section_of<RegexSection>, make}; }

}  // namespace collimate::rlhf
