#include "collimate/text/regex.h"

#include <memory>

#include "collimate/rlhf/reward/reward_section.h"
#include "collimate/rlhf/reward/rules.h"
#include "collimate/text/utf8.h"

namespace collimate::rlhf {
namespace {

using nlohmann::json;

struct RegexSection : RuleSection {
  COLLIMATE_OPTION(std::string, pattern, "", "",
                   "Perl regular expression (PCRE2, UTF-8), searched for anywhere in the completion",
                   base::not_empty());

  void section_demands(const std::string& path) const override {
    const std::string why = text::Regex::problem(pattern);
    if (!why.empty()) pattern.item_refuse(path, "a regular expression", why);
  }
};

// Makes the rule. A completion on which the search gives up, by its limits on steps and memory, is a failed sample.
Rule make_regex(const json& options) {
  const std::string pattern = read_entry<RegexSection>(options).pattern;
  const auto expression = std::make_shared<const text::Regex>(pattern);  // shared, as a Rule is copied
  return [expression](const RewardSample& sample) {
    text::Span match;
    return expression->find(text::valid_utf8(sample.completion), 0, match) ? 1.0 : 0.0;
  };
}

}  // namespace

RuleEntry regex_rule() { return {"regex", "1 when the pattern is found", section_of<RegexSection>, make_regex}; }

}  // namespace collimate::rlhf
