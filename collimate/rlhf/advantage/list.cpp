#include "collimate/rlhf/advantage/list.h"

#include "collimate/base/error.h"
#include "collimate/rlhf/advantage/gae.h"
#include "collimate/rlhf/advantage/group.h"
#include "collimate/rlhf/advantage/leave_one_out.h"
#include "collimate/rlhf/advantage/process.h"

namespace collimate::rlhf {

const std::vector<AdvantageEntry>& advantages() {
  static const std::vector<AdvantageEntry> list = {group_entry(), leave_one_out_entry(), process_entry(), gae_entry()};
  return list;
}

std::vector<std::string> advantage_names(const std::string& rows) {
  std::vector<std::string> names;
  for (const AdvantageEntry& entry : advantages())
    if (rows.empty() || entry.rows == rows) names.push_back(entry.name);
  return names;
}

const AdvantageEntry& find_advantage(const std::string& rows, const std::string& fallback,
                                     const AlgorithmOptions& options) {
  const std::string name = options.advantage->value_or(fallback);
  for (const AdvantageEntry& entry : advantages())
    if (entry.rows == rows && entry.name == name) return entry;
  throw base::InputError(base::expectation(
      "algorithm.advantage", fmt::format("one of {} with this recipe", fmt::join(advantage_names(rows), ", ")),
      "\"" + name + "\""));
}

}  // namespace collimate::rlhf
