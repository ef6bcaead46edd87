#include "collimate/text/regex.h"

#include <memory>

#include "collimate/base/error.h"
#include "collimate/rlhf/reward/reward_section.h"
#include "collimate/rlhf/reward/rules.h"
#include "collimate/text/utf8.h"

namespace collimate::rlhf {
namespace {

using base::Option;
using nlohmann::json;

struct RegexSection : RuleSection {
  Option<std::string> pattern{this, "pattern", "", "",
                              "Perl regular expression (PCRE2, UTF-8), searched for anywhere in the completion"};
};

// A completion on which the search gives up, by its limits on steps and memory, is a failed sample.
Rule make(const json& options) {
  const std::string pattern = read_entry<RegexSection>(options).pattern;
  if (pattern.empty()) throw base::InputError(base::expectation("reward.regex", "a `pattern`", "none"));
  const auto expression = std::make_shared<const text::Regex>(pattern);  // a Rule is copied
  return [expression](const RewardSample& sample) {
    text::Span match;
    return expression->find(text::valid_utf8(sample.completion), 0, match) ? 1.0 : 0.0;
  };
}

}  // namespace

RuleEntry regex_rule() { return {"regex", "1 when the pattern is found", section_of<RegexSection>, make}; }

}  // namespace collimate::rlhf
