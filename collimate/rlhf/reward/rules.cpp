#include "collimate/rlhf/reward/rules.h"

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

}  // namespace collimate::rlhf
