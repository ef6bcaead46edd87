#include <algorithm>
#include <cmath>

#include "collimate/plan/published/scenario_parts.h"
#include "collimate/plan/published/text.h"

namespace collimate::plan::published {
namespace {

bool is_training(const std::string& word) { return has(word, "train"); }

// "16 train:16 rollout", "4 gen:12 train", "32:32" (training first), "75% inference : 25% training", "4 trainer -> 4
// rollout".
bool read_two_sides(const std::string& text, Scenario& scenario) {
  const auto sides = match(text, R"(([0-9]+)(%?) ?([a-z]*) ?(?::|->) ?([0-9]+)%? ?([a-z]*))");
  if (!sides) return false;
  double first = std::stod((*sides)[0]), second = std::stod((*sides)[3]);
  if ((*sides)[1] == "%") {
    first *= scenario.devices / 100.0;
    second *= scenario.devices / 100.0;
  }
  const bool second_trains = is_training((*sides)[4]) && !is_training((*sides)[2]);
  scenario.train_devices = std::max(1, static_cast<int>(std::lround(second_trains ? second : first)));
  scenario.generate_devices = std::max(1, static_cast<int>(std::lround(second_trains ? first : second)));
  return true;
}

// "Actor/Critic/Ref/RM GPUs 4/4/2/2 + vLLM" or "4/2/1/1": what is left generates, or the actor's devices do.
bool read_groups(const std::string& text, Scenario& scenario) {
  const auto sizes = match(text, R"(\b([0-9]+)/([0-9]+)/([0-9]+)/([0-9]+)\b)");
  if (!sizes) return false;
  int used = 0, i = 0;
  for (const char* role : {"actor", "critic", "ref", "reward"}) {
    scenario.group_devices[role] = std::stoi((*sizes)[static_cast<size_t>(i++)]);
    used += scenario.group_devices[role];
  }
  const int left = scenario.devices - used;
  scenario.group_devices["generate"] = left > 0 ? left : scenario.group_devices["actor"];
  scenario.sharing = Sharing::kGroups;
  return true;
}

}  // namespace

void share_in_groups(Scenario& scenario) {
  scenario.sharing = Sharing::kGroups;
  const int fourth = std::max(1, scenario.devices / 4), eighth = std::max(1, scenario.devices / 8);
  scenario.group_devices = {
      {"generate", fourth}, {"actor", fourth}, {"critic", fourth}, {"ref", eighth}, {"reward", eighth}};
}

void read_sharing(const std::string& placement, Scenario& scenario) {
  if (read_groups(placement, scenario)) return;
  if (read_two_sides(placement, scenario)) {
    scenario.sharing = Sharing::kTwoSides;
  } else if (has(placement, "disaggregated")) {
    scenario.sharing = Sharing::kTwoSides;
    scenario.train_devices = scenario.generate_devices = std::max(1, scenario.devices / 2);
  } else if (has(placement, "staleness eta=")) {
    // Asynchronous without sizes: the three to one that AReaL states as its rule.
    scenario.sharing = Sharing::kTwoSides;
    scenario.train_devices = std::max(1, scenario.devices / 4);
    scenario.generate_devices = scenario.devices - scenario.train_devices;
  }
  if (scenario.sharing != Sharing::kTwoSides) return;
  scenario.staleness = number(placement, R"(staleness_threshold=([0-9.]+))", 1);
  scenario.staleness = number(placement, R"(staleness eta=([0-9.]+))", scenario.staleness);
}

}  // namespace collimate::plan::published
