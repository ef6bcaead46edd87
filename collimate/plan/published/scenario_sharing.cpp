#include <algorithm>
#include <cmath>

#include "collimate/base/at.h"
#include "collimate/plan/published/scenario_parts.h"
#include "collimate/plan/published/text.h"

namespace collimate::plan::published {
namespace {

constexpr const char* kSide = "(?:train(?:er|ing)?|gen(?:eration)?|roll ?out|inference|infer)";

bool is_training(const std::string& word) { return has(word, "train"); }

[[noreturn]] void reject(const Scenario& scenario, const std::string& text) {
  throw NotModelled{"placement '" + text + "' of " + std::to_string(scenario.devices) + " devices"};
}

// "16 train:16 rollout", "4 gen:12 train", "32:32" (training first), "75% inference : 25% training", "4 trainer -> 4
// rollout". Two numbers without a word are devices where they come to all of them, and a ratio where they divide them.
bool read_two_sides(const std::string& text, Scenario& scenario) {
  const std::string pattern = std::string(R"((?:^|[^0-9.:/])([0-9]+)(%?) ?()") + kSide +
                              R"()? ?(?::|->) ?([0-9]+)%? ?()" + kSide + R"()?(?![0-9.]*[ ]?:))";
  const auto sides = match(text, pattern.c_str());
  if (!sides) return false;
  const double all = scenario.devices;
  double first = whole((*sides)[0]), second = whole((*sides)[3]);
  const double sum = first + second;
  const bool named = !(*sides)[2].empty() || !(*sides)[4].empty();
  if (first < 1 || second < 1) reject(scenario, text);
  if ((*sides)[1] == "%" ? sum > 100 : (has(text, "ratio") || (!named && sum < all))) {
    if ((*sides)[1] == "%" || std::fmod(all, sum) != 0) reject(scenario, text);
    first *= all / sum;
    second *= all / sum;
  } else if ((*sides)[1] == "%") {
    first *= all / 100;
    second *= all / 100;
  } else if (sum > all) {
    reject(scenario, text);
  }
  const bool second_trains = is_training((*sides)[4]) && !is_training((*sides)[2]);
  scenario.sharing = Sharing::kTwoSides;
  scenario.train_devices = std::max(1, static_cast<int>(std::lround(second_trains ? second : first)));
  scenario.generate_devices = std::max(1, static_cast<int>(std::lround(second_trains ? first : second)));
  return true;
}

// "Actor/Critic/Ref/RM GPUs 4/4/2/2 + vLLM" or "4/2/1/1": what is left generates, or the actor's devices do.
bool read_groups(const std::string& text, Scenario& scenario) {
  const auto sizes = match(text, R"((?:^|[^0-9/])([0-9]+)/([0-9]+)/([0-9]+)/([0-9]+)(?![0-9/]))");
  if (!sizes) return false;
  int used = 0, set = 0;
  for (const char* role : {"actor", "critic", "ref", "reward"}) {
    const int devices = whole(base::at((*sizes), set));
    if (devices < 1 || devices > scenario.devices - used) reject(scenario, text);
    scenario.places[role] = {devices, set++};
    used += devices;
  }
  const int left = scenario.devices - used;
  scenario.places["generate"] = left > 0 ? Place{left, set} : scenario.places["actor"];
  scenario.sharing = Sharing::kGroups;
  return true;
}

// "vLLM:Actor:Critic = 1:1:1": the reference model beside the actor, the reward model beside the critic.
bool read_ratio_of_three(const std::string& text, Scenario& scenario) {
  const auto parts = match(text, R"((?:^|[^0-9.:])([0-9]+) ?: ?([0-9]+) ?: ?([0-9]+)(?![0-9.:]))");
  if (!parts) return false;
  const int sum = whole((*parts)[0]) + whole((*parts)[1]) + whole((*parts)[2]);
  if (!has(text, "vLLM:Actor:Critic") || sum < 1 || scenario.devices % sum != 0) reject(scenario, text);
  int set = 0;
  for (const char* role : {"generate", "actor", "critic"}) {
    scenario.places[role] = {whole(base::at((*parts), set)) * scenario.devices / sum, set};
    if (scenario.places[role].devices < 1) reject(scenario, text);
    ++set;
  }
  scenario.places["ref"] = scenario.places["actor"];
  scenario.places["reward"] = scenario.places["critic"];
  scenario.sharing = Sharing::kGroups;
  return true;
}

// Sets of roles by the name of a form: 2409.19256 has split and standalone, 2312.11819 interleaving.
std::map<std::string, std::pair<double, int>> form_of(const std::string& text, const Scenario& scenario) {
  if (has_word(text, "split"))
    return {{"actor", {0.5, 0}}, {"ref", {0.5, 0}}, {"generate", {0.5, 0}}, {"critic", {0.5, 1}}, {"reward", {0.5, 1}}};
  if (has_word(text, "interleaving") || has_word(text, "interleaved"))
    return {{"actor", {1, 0}}, {"critic", {1, 0}}, {"generate", {1, 0}}, {"ref", {0.5, 1}}, {"reward", {0.5, 2}}};
  std::map<std::string, std::pair<double, int>> form;
  if (!has_word(text, "standalone")) return form;
  int set = 0;
  for (const auto& [role, model] : scenario.models) form[role] = {1.0 / double(scenario.models.size()), set++};
  form["generate"] = form["actor"];
  return form;
}

bool read_form(const std::string& text, Scenario& scenario) {
  const auto form = form_of(text, scenario);
  if (form.empty()) return false;
  for (const auto& [role, part] : form) {
    const auto& [share, set] = part;
    scenario.places[role] = {static_cast<int>(std::floor(share * scenario.devices + 1e-9)), set};
    if (scenario.places[role].devices < 1) reject(scenario, text);
  }
  scenario.sharing = Sharing::kGroups;
  return true;
}

// Training and inference apart, without sizes: halves. Asynchronous with a bound: the three to one of AReaL's rule.
bool read_apart(const std::string& text, Scenario& scenario) {
  const bool bounded = has(text, "staleness eta=");
  if (!bounded && !has_word(text, "disaggregated") && !has_word(text, "separation")) return false;
  scenario.sharing = Sharing::kTwoSides;
  scenario.train_devices = std::max(1, scenario.devices / (bounded ? 4 : 2));
  scenario.generate_devices = std::max(1, scenario.devices - scenario.train_devices);
  return true;
}

void read_staleness(const Row& row, const std::string& text, Scenario& scenario) {
  if (scenario.sharing != Sharing::kTwoSides) return;
  const bool synchronous = has_word(text, "separation") || has_word(text, "synchronous") || has_word(text, "on policy");
  scenario.staleness = synchronous ? 0 : number(row["system"], R"(([0-9]{1,3})-step Off)", 1);
  scenario.staleness = number(text, R"(staleness_threshold=([0-9.]+))", scenario.staleness);
  scenario.staleness = number(text, R"(staleness eta=([0-9.]+))", scenario.staleness);
  scenario.continuous = scenario.staleness > 0 && (scenario.staleness > 1 || scenario.backend == "areal" ||
                                                   has(text, "fully async") || has(text, "fully_async"));
}

}  // namespace

void share_in_groups(Scenario& scenario) {
  scenario.sharing = Sharing::kGroups;
  const int fourth = std::max(1, scenario.devices / 4), eighth = std::max(1, scenario.devices / 8);
  scenario.places = {{"generate", {fourth, 0}},
                     {"actor", {fourth, 1}},
                     {"critic", {fourth, 2}},
                     {"ref", {eighth, 3}},
                     {"reward", {eighth, 4}}};
}

void read_sharing(const Row& row, Scenario& scenario) {
  const std::string& placement = row["placement"];
  const std::string text = row["system"] + " " + placement;
  if (!read_groups(placement, scenario) && !read_ratio_of_three(placement, scenario) &&
      !read_two_sides(placement, scenario) && !read_form(text, scenario) && !read_apart(text, scenario) &&
      has(placement, "separated groups"))
    share_in_groups(scenario);
  read_staleness(row, text, scenario);
}

}  // namespace collimate::plan::published
