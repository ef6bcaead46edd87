#include "collimate/plan/published/scenario_parts.h"
#include "collimate/plan/published/text.h"

namespace collimate::plan::published {
namespace {

int count_in(const std::string& text, const char* pattern) {
  const auto found = match(text, pattern);
  if (!found) return 0;
  const int count = whole((*found)[0]);
  if (count > kMostDevices) throw NotModelled{"no layout: '" + text + "'"};
  return count;
}

// The numbers of a layout in one piece of text.
RoleLayout sizes_in(const std::string& text) {
  RoleLayout layout;
  layout.tp = count_in(text, R"(\bTP ?=? ?([0-9]+))");
  layout.pp = count_in(text, R"(\bPP ?=? ?([0-9]+))");
  layout.ep = count_in(text, R"(\bEP ?=? ?([0-9]+))");
  layout.cp = count_in(text, R"(\bCP ?=? ?([0-9]+))");
  if (layout.tp > 0) layout.dp = count_in(text, R"(\bDP ?=? ?([0-9]+))");
  layout.devices = count_in(text, R"(\b([0-9]+) GPUs)");
  if (layout.devices == 0) layout.devices = count_in(text, R"(\b(?:ref|reward|value) ([0-9]+)\b)");
  return layout;
}

void merge_sizes(RoleLayout& into, const RoleLayout& from) {
  for (int RoleLayout::*size :
       {&RoleLayout::tp, &RoleLayout::pp, &RoleLayout::ep, &RoleLayout::cp, &RoleLayout::dp, &RoleLayout::devices})
    if (from.*size > 0) into.*size = from.*size;
}

// "gen[TP,PP]=[4,1] train[TP,CP,EP,PP,VPP]=[2,1,8,1,n/a]": pipeline and experts stand last but one and two, parts of a
// row second where there are five or more.
bool read_bracketed(const std::string& text, Scenario& scenario) {
  const auto gen = match(text, R"(gen\[TP,PP\]=\[([0-9]+),([0-9]+)\])");
  const auto train = match(text, R"(train\[[^\]]*\]=\[([0-9]+),(?:([0-9]+),(?:[0-9]+,)*)?([0-9]+),([0-9]+),[^,\]]*\])");
  if (gen) scenario.layouts["generate"] = {whole((*gen)[0]), whole((*gen)[1]), 0, 0, 0, 0};
  if (train) {
    const int parts = (*train)[1].empty() ? 0 : whole((*train)[1]);
    scenario.layouts["train"] = {whole((*train)[0]), whole((*train)[3]), whole((*train)[2]), 0, parts, 0};
  }
  return gen || train;
}

}  // namespace

RoleLayout Scenario::layout(const std::string& role) const {
  RoleLayout made;
  for (const std::string& name : {std::string(), role})
    if (const auto found = layouts.find(name); found != layouts.end()) merge_sizes(made, found->second);
  return made;
}

void require_whole_replicas(const std::string& text, const Scenario& scenario) {
  for (const char* role : {"generate", "train", "reward", "ref", "critic"}) {
    const std::string name = role;
    const auto place = scenario.places.find(name == "train" ? "actor" : name);
    int devices = scenario.devices;
    if (scenario.sharing == Sharing::kTwoSides)
      devices = name == "generate" ? scenario.generate_devices : scenario.train_devices;
    else if (scenario.sharing == Sharing::kGroups && place != scenario.places.end())
      devices = place->second.devices;
    const int tp = scenario.layout(name).tp;
    if (tp > 0 && devices % tp != 0)
      throw NotModelled{"parallelism '" + text + "': TP" + std::to_string(tp) + " does not divide the " +
                        std::to_string(devices) + " devices of " + name};
  }
}

void read_layouts(const std::string& text, Scenario& scenario) {
  if (read_bracketed(text, scenario)) return;
  constexpr std::pair<const char*, const char*> kRoles[] = {
      {"policy", "generate"},     {"rollout", "generate"}, {"vllm", "generate"}, {"gen", "generate"},
      {"generation", "generate"}, {"ppo", "train"},        {"train", "train"},   {"training", "train"},
      {"reward", "reward"},       {"ref", "ref"},          {"value", "critic"},  {"critic", "critic"}};
  std::string piece;
  for (const char c : text + ";") {
    if (c != ',' && c != ';' && c != '(' && c != ')') {
      piece += c;
      continue;
    }
    const RoleLayout sizes = sizes_in(piece);
    bool named = false;
    for (const auto& [word, role] : kRoles)
      if (has_word(piece, word)) {
        merge_sizes(scenario.layouts[role], sizes);
        named = true;
      }
    if (!named) merge_sizes(scenario.layouts[""], sizes);
    piece.clear();
  }
}

}  // namespace collimate::plan::published
