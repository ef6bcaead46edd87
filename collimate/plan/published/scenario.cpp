#include "collimate/plan/published/scenario.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "collimate/base/error.h"
#include "collimate/plan/published/scenario_parts.h"
#include "collimate/plan/published/text.h"

namespace collimate::plan::published {
namespace {

constexpr int64_t kUsualLoraRank = 64;

// Which software a system is, by a word of its name; the first that fits.
constexpr std::pair<const char*, const char*> kSystems[] = {
    {"deepspeed", "deepspeed-chat"}, {"openrlhf", "openrlhf"}, {"real", "real"}, {"chatlearn 0", "chatlearn-megatron"},
    {"chatlearn", "chatlearn-vllm"}, {"nemo-rl", "nemo-rl"},   {"verl", "verl"}, {"hybridflow", "verl"}};

Gpu gpu_of(const std::string& text) {
  if (const Gpu* known = gpu_named(text.substr(0, text.find_first_of(" (,")))) return *known;
  // "unstated (A100/A800/H800-80GB class)": the first of those that it may be.
  if (const auto named = match(text, R"(\(([A-Z]+[0-9]+))"))
    if (const Gpu* known = gpu_named((*named)[0])) return *known;
  throw NotModelled{"GPU type '" + text + "' is not in the table"};
}

int devices_of(const std::string& text) {
  char* end = nullptr;
  const long count = std::strtol(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || count < 1)
    throw NotModelled{text.empty() ? "number of devices not given" : "no one number of devices: " + text};
  return static_cast<int>(count);
}

void read_models(const Row& row, Scenario& scenario) {
  const std::string& actor = row["actor"];
  const std::optional<shape::Outline> model = model_of(actor);
  if (!model) throw NotModelled{actor.empty() ? "model not given" : "no one model: '" + actor + "'"};
  scenario.models["actor"] = *model;
  for (const char* role : {"critic", "ref", "reward"}) {
    const std::string& text = row[role];
    if (text == "same") scenario.models[role] = *model;
    if (const std::optional<shape::Outline> other = model_of(text)) scenario.models[role] = *other;
  }
  // "GPT L48/h7168" beside the size: heads of 128, an MLP four times as wide.
  if (const auto cut = match(row["note"], R"(GPT L([0-9]+)/h([0-9]+))"))
    for (auto& [role, outline] : scenario.models) {
      const int64_t layers = std::atoll((*cut)[0].c_str()), hidden = std::atoll((*cut)[1].c_str());
      outline = {"gpt", layers, hidden, hidden / 128, hidden / 128, 128, 4 * hidden, 50257, false, true, 2048};
    }
}

// The numbers of a layout in one piece of text.
RoleLayout sizes_in(const std::string& text) {
  RoleLayout layout;
  layout.tp = static_cast<int>(number(text, R"(\bTP([0-9]+))", 0));
  layout.pp = static_cast<int>(number(text, R"(\bPP([0-9]+))", 0));
  layout.ep = static_cast<int>(number(text, R"(\bEP([0-9]+))", 0));
  layout.devices = static_cast<int>(number(text, R"(\b([0-9]+) GPUs)", 0));
  if (layout.devices == 0) layout.devices = static_cast<int>(number(text, R"(\b(?:ref|reward|value) ([0-9]+)\b)", 0));
  return layout;
}

void merge(RoleLayout& into, const RoleLayout& from) {
  for (int RoleLayout::*size : {&RoleLayout::tp, &RoleLayout::pp, &RoleLayout::ep, &RoleLayout::devices})
    if (from.*size > 0) into.*size = from.*size;
}

// "gen[TP,PP]=[4,1] train[TP,CP,EP,PP,VPP]=[2,1,8,1,n/a]": pipeline and experts stand last but one and two.
bool read_bracketed(const std::string& text, Scenario& scenario) {
  const auto gen = match(text, R"(gen\[TP,PP\]=\[([0-9]+),([0-9]+)\])");
  const auto train = match(text, R"(train\[[^\]]*\]=\[([0-9]+),(?:[0-9]+,)*([0-9]+),([0-9]+),[^,\]]*\])");
  if (gen) scenario.layouts["generate"] = {std::atoi((*gen)[0].c_str()), std::atoi((*gen)[1].c_str()), 0, 0};
  if (train)
    scenario.layouts["train"] = {std::atoi((*train)[0].c_str()), std::atoi((*train)[2].c_str()),
                                 std::atoi((*train)[1].c_str()), 0};
  return gen || train;
}

void read_layouts(const std::string& text, Scenario& scenario) {
  if (read_bracketed(text, scenario)) return;
  constexpr std::pair<const char*, const char*> kRoles[] = {
      {"policy", "generate"}, {"rollout", "generate"}, {"vllm", "generate"}, {"gen ", "generate"}, {"ppo", "train"},
      {"train", "train"},     {"reward", "reward"},    {"ref", "ref"},       {"value", "critic"}};
  std::string piece;
  for (const char c : text + ";") {
    if (c != ',' && c != ';' && c != '(' && c != ')') {
      piece += c;
      continue;
    }
    const RoleLayout sizes = sizes_in(piece);
    bool named = false;
    for (const auto& [word, role] : kRoles)
      if (has(piece, word)) {
        merge(scenario.layouts[role], sizes);
        named = true;
      }
    if (!named) merge(scenario.layouts[""], sizes);
    piece.clear();
  }
}

void read_techniques(const Row& row, Scenario& scenario) {
  const std::string text = row["parallelism"] + " " + row["placement"];
  scenario.micro_batch = static_cast<int64_t>(number(text, R"(\bMBS([0-9]+))", 0));
  scenario.recompute = has(text, "recompute");
  scenario.offload = has(text, "offload");
  scenario.zero3 = has(text, "zero-3");
  scenario.fp8 = has(row["system"], "fp8");
  scenario.searched = has(row["placement"], "searched");
  if (has(row["algo"], "lora"))
    scenario.lora_rank = static_cast<int64_t>(number(row["note"], R"(LoRA dim ([0-9]+))", kUsualLoraRank));
  scenario.recomputes_log_probs = !scenario.models.contains("critic") && !has(row["phase"], "step 3");
  if (const double tp = number(row["placement"], R"(TP([0-9]+) intra)", 0); tp > 0)
    scenario.layouts[""] = {static_cast<int>(tp), 0, 0, 0};
}

Scenario read(const Row& row, const std::string& system, bool own_setup) {
  Scenario scenario;
  scenario.backend = backend_of(system);
  if (scenario.backend.empty()) throw NotModelled{"software of '" + system + "' is not modelled"};
  scenario.gpu = gpu_of(row["gpu_type"]);
  scenario.devices = devices_of(row["n_gpus"]);
  read_models(row, scenario);
  read_load(row, scenario);
  if (own_setup) {
    read_layouts(row["parallelism"], scenario);
    read_sharing(row["placement"], scenario);
    read_techniques(row, scenario);
  } else if (has(row["algo"], "lora")) {
    scenario.lora_rank = kUsualLoraRank;
  }
  if (scenario.backend == "openrlhf" && scenario.sharing == Sharing::kColocated) share_in_groups(scenario);
  return scenario;
}

}  // namespace

RoleLayout Scenario::layout(const std::string& role) const {
  RoleLayout made;
  for (const std::string& name : {std::string(), role})
    if (const auto found = layouts.find(name); found != layouts.end()) merge(made, found->second);
  return made;
}

std::string backend_of(const std::string& system) {
  for (const auto& [word, backend] : kSystems)
    if (has(system, word) && !(std::string(word) == "real" && has(system, "areal"))) return backend;
  return has(system, "areal") ? "areal" : "";
}

std::variant<Scenario, std::string> scenario_of(const Row& row) {
  try {
    return read(row, row["system"], true);
  } catch (const NotModelled& reason) {
    return reason.reason;
  }
}

std::variant<Scenario, std::string> baseline_of(const Row& row) {
  try {
    return read(row, row["baseline"], false);
  } catch (const NotModelled& reason) {
    return reason.reason;
  }
}

}  // namespace collimate::plan::published
