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

std::shared_ptr<const text::Regex> compiled(const std::string& pattern) {
  try {
    return std::make_shared<const text::Regex>(pattern);
  } catch (const base::InputError& error) {
    throw base::InputError(base::expectation("reward.pattern", "a regular expression", error.what()));
  }
}

// A completion on which the search gives up, by its limits on steps and memory, is a failed sample.
Rule make(const json& options) {
  const std::string pattern = read_entry<RegexSection>(options).pattern;
  if (pattern.empty()) throw base::InputError(base::expectation("reward.pattern", "a regular expression", "none"));
  const auto expression = compiled(pattern);  // shared, as a Rule is copied
  return [expression](const RewardSample& sample) {
    text::Span match;
    return expression->find(text::valid_utf8(sample.completion), 0, match) ? 1.0 : 0.0;
  };
}

}  // namespace

RuleEntry regex_rule() { return {"regex", "1 when the pattern is found", section_of<RegexSection>, make}; }

}  // namespace collimate::rlhf
