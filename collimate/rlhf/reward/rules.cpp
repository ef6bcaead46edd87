#include "collimate/rlhf/reward/rules.h"

#include "collimate/base/edit_distance.h"

namespace collimate::rlhf {

// A file each.
RuleEntry gsm8k_rule();
RuleEntry countdown_rule();
RuleEntry exact_rule();
RuleEntry regex_rule();
RuleEntry sequence_rule();
RuleEntry digit_sequence_rule();

const std::vector<RuleEntry>& rules() {
  static const std::vector<RuleEntry> list = {gsm8k_rule(), countdown_rule(), exact_rule(),
                                              regex_rule(), sequence_rule(),  digit_sequence_rule()};
  return list;
}

const RuleEntry& find_rule(const std::string& name, const std::string& where) {
  std::vector<std::string> known;
  for (const RuleEntry& entry : rules()) {
    if (entry.name == name) return entry;
    known.push_back(entry.name);
  }
  base::throw_unknown_name(where, name, known, "a rule, ");
}

}  // namespace collimate::rlhf
