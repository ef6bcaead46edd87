#include <string_view>

#include "collimate/base/stripped.h"
#include "collimate/rlhf/reward/equal_positions.h"
#include "collimate/rlhf/reward/reward_section.h"
#include "collimate/rlhf/reward/rule_text.h"
#include "collimate/rlhf/reward/rules.h"

namespace collimate::rlhf {
namespace {

using nlohmann::json;

struct SequenceSection : RuleSection {
  COLLIMATE_OPTION(std::string, separator, ",", "", "what stands between two parts",
                   base::satisfying("one character", [](const std::string& value) { return value.size() == 1; }));
  COLLIMATE_OPTION(std::string, end, "", "", "what ends a complete sequence");
  COLLIMATE_OPTION(double, unfinished_weight, 0.9, "", "factor of the reward when that end is missing");
};

Rule make_sequence(const json& options) {
  const auto section = read_entry<SequenceSection>(options);
  return [separator = section.separator->front(), end = section.end.get(),
          unfinished = section.unfinished_weight.get()](const RewardSample& sample) {
    const std::string truth = text_field(sample, "ground_truth");
    const std::vector<std::string_view> wanted = split(base::stripped(truth), separator);
    std::string_view text = base::stripped(sample.completion);
    const bool finished = end.empty() || text.ends_with(end);
    if (finished) text = base::stripped(text.substr(0, text.size() - end.size()));
    const std::vector<std::string_view> produced = split(text, separator);
    return equal_positions(sample, produced, wanted.size(), finished ? 1.0 : unfinished,
                           [&](size_t i) { return base::stripped(produced[i]) == base::stripped(wanted[i]); });
  };
}

}  // namespace

RuleEntry sequence_rule() {
  return {"sequence", "the share of places in which a list equals the column ground_truth", section_of<SequenceSection>,
          make_sequence};
}

}  // namespace collimate::rlhf
