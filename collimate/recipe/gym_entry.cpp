#include "collimate/recipe/gym_entry.h"

#include "collimate/base/error.h"

namespace collimate::recipe {
namespace {

// Returns a list's entries of environments; a list may also be its one entry, or null.
std::vector<nlohmann::json> gym_entries(const nlohmann::json& rewards) {
  std::vector<nlohmann::json> found;
  for (const nlohmann::json& entry : rewards.is_array() ? rewards : nlohmann::json::array({rewards}))
    if (entry.is_object() && entry.contains("gym")) found.push_back(entry);
  return found;
}

}  // namespace

nlohmann::json gym_entry(const Config& config) {
  const std::vector<nlohmann::json> entries = gym_entries(config.reward);
  if (entries.size() > 1)
    throw base::InputError(base::expectation("reward", "one environment at most, as it answers the policy's turns",
                                             fmt::format("{} entries with gym", entries.size()),
                                             "one class that does what they do"));
  if (entries.empty()) return nullptr;
  const nlohmann::json& turn = entries.front().value("turn_tokens", nlohmann::json());
  const int64_t most = config.rollout.completion_tokens;
  if (turn.is_number_integer() && turn.get<int64_t>() > most)
    throw base::InputError(base::expectation(
        "reward.turn_tokens", fmt::format("at most rollout.completion_tokens, {}, which all turns share", most),
        turn.dump(),
        "a turn_tokens that leaves room for several turns, or a larger "
        "rollout.completion_tokens"));
  return entries.front();
}

void check_gym_entries(const Config& config, const nlohmann::json& rewards) {
  for (const nlohmann::json& entry : gym_entries(rewards))
    if (entry != gym_entry(config))
      throw base::InputError(base::expectation("evaluation", "the environment of reward, with which samples are drawn",
                                               entry.at("gym").dump(), "leaving the entry out of evaluation"));
}

}  // namespace collimate::recipe
