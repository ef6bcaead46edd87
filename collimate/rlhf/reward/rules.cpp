#include "collimate/rlhf/reward/rules.h"

#include "collimate/base/edit_distance.h"
#include "collimate/base/named.h"

// A line for each rule, which has a file of its own: the function that gives its entry.
// clang-format off
#define COLLIMATE_RULES(EACH) \
  EACH(gsm8k_rule) \
  EACH(countdown_rule) \
  EACH(exact_rule) \
  EACH(regex_rule) \
  EACH(sequence_rule) \
  EACH(digit_sequence_rule)
// clang-format on

namespace collimate::rlhf {

#define COLLIMATE_DECLARE(entry) RuleEntry entry();
COLLIMATE_RULES(COLLIMATE_DECLARE)
#undef COLLIMATE_DECLARE

const std::vector<RuleEntry>& rules() {
#define COLLIMATE_ENTRY(entry) entry(),
  static const std::vector<RuleEntry> list = {COLLIMATE_RULES(COLLIMATE_ENTRY)};
#undef COLLIMATE_ENTRY
  return list;
}

const RuleEntry& find_rule(const std::string& name, const std::string& where) {
  for (const RuleEntry& entry : rules())
    if (entry.name == name) return entry;
  base::throw_unknown_name(where, name, base::names_of(rules()), "a rule, ");
}

}  // namespace collimate::rlhf
