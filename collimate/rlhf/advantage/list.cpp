#include "collimate/rlhf/advantage/list.h"

#include <algorithm>

#include "collimate/base/error.h"

// Each file of this folder with an advantage has a line here, which calls the function that returns its entry.
// clang-format off
#define COLLIMATE_ADVANTAGES \
  group_entry(), \
  leave_one_out_entry(), \
  process_entry(), \
  reinforce_entry(), \
  reinforce_baseline_entry(), \
  remax_entry(), \
  optimal_baseline_entry(), \
  gpg_entry(), \
  multi_reward_entry(), \
  distillation_entry(), \
  gae_entry()
// clang-format on

namespace collimate::rlhf {

AdvantageEntry COLLIMATE_ADVANTAGES;  // declares them

namespace {

std::vector<AdvantageEntry>& advantage_list() {
  static std::vector<AdvantageEntry> all = {COLLIMATE_ADVANTAGES};
  return all;
}

}  // namespace

const std::vector<AdvantageEntry>& advantages() { return advantage_list(); }

void register_advantage(AdvantageEntry entry) {
  const auto fail = [](const std::string& expected, const std::string& got) {
    throw base::InputError(base::expectation("register_advantage", expected, got));
  };
  if (advantage_names(entry.rows).empty()) fail("rows of the kind groups or values", "\"" + entry.rows + "\"");
  const std::vector<std::string> taken = advantage_names();
  if (std::find(taken.begin(), taken.end(), entry.name) != taken.end())
    fail("a name that is free", "\"" + entry.name + "\" again");
  advantage_list().push_back(std::move(entry));
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
