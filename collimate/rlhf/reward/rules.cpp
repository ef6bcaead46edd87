#include "collimate/rlhf/reward/rules.h"

#include "collimate/base/edit_distance.h"
#include "collimate/base/named.h"

// Each rule has a file of its own and a line here, which calls the function that returns its entry.
// clang-format off
#define COLLIMATE_RULES \
  gsm8k_rule(), \
  countdown_rule(), \
  exact_rule(), \
  regex_rule(), \
  sequence_rule(), \
  digit_sequence_rule()
// clang-format on

namespace collimate::rlhf {

RuleEntry COLLIMATE_RULES;  // declares them

const std::vector<RuleEntry>& rules() {
  static const std::vector<RuleEntry> list = {COLLIMATE_RULES};
  return list;
}

const RuleEntry& find_rule(const std::string& name, const std::string& where) {
  for (const RuleEntry& entry : rules())
    if (entry.name == name) return entry;
  base::throw_unknown_name(where, name, base::names_of(rules()), "a rule, ");
}

}  // namespace collimate::rlhf
