#include "collimate/plan/published/scenario.h"

#include <algorithm>
#include <cmath>

#include "collimate/base/error.h"
#include "collimate/plan/published/scenario_parts.h"
#include "collimate/plan/published/text.h"

namespace collimate::plan::published {
namespace {

constexpr int64_t kUsualLoraRank = 64;
// Of DeepSpeed-Chat's calls on one device: 8 rows of 2,048 in OpenRLHF's tuned runs of it.
constexpr double kCallTokens = 16384;

// Which software a system is, by the word that its name begins with; the first that fits.
constexpr std::pair<const char*, const char*> kSystems[] = {{"deepspeed-chat", "deepspeed-chat"},
                                                            {"deepspeedchat", "deepspeed-chat"},
                                                            {"deepspeed chat", "deepspeed-chat"},
                                                            {"openrlhf", "openrlhf"},
                                                            {"realhf", "real"},
                                                            {"chatlearn 0", "chatlearn-megatron"},
                                                            {"chatlearn", "chatlearn-vllm"},
                                                            {"nemo-rl", "nemo-rl"},
                                                            {"verl", "verl"},
                                                            {"hybridflow", "hybridflow"},
                                                            {"areal", "areal"}};

int devices_of(const std::string& text) {
  const auto product = match(text, R"(^\s*([0-9]+) ?x ?([0-9]+)\s*$)");
  const double count = product ? double(whole((*product)[0])) * whole((*product)[1]) : finite(text).value_or(0);
  if (count < 1 || count > kMostDevices || count != std::floor(count))
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
  // A size of several families, beside a model of OPT's: OPT's.
  const auto critic = scenario.models.find("critic");
  if (const double size = finite(actor).value_or(0);
      size > 0 && critic != scenario.models.end() && critic->second.name.starts_with("opt-"))
    if (const shape::Outline* opt = shape::outline_named("opt-" + actor + "b"); opt != nullptr)
      for (auto& [role, outline] : scenario.models)
        if (outline == *model) outline = *opt;
  // "GPT L48/h7168" beside the size: heads of 128, an MLP four times as wide.
  const auto cut = match(row["note"], R"(GPT L([0-9]+)/h([0-9]+))");
  if (!cut) return;
  const int64_t layers = whole((*cut)[0]), hidden = whole((*cut)[1]);
  if (layers < 1 || hidden < 128) throw NotModelled{"no model: '" + row["note"] + "'"};
  for (auto& [role, outline] : scenario.models)
    outline = {"gpt", layers, hidden, hidden / 128, hidden / 128, 128, 4 * hidden, 50257, false, true, 2048};
}

// What an algorithm adds to or leaves out of PPO's calls (2409.19256, figure 1).
void read_algorithm(const Row& row, Scenario& scenario) {
  const std::string& algo = row["algo"];
  if (has_word(algo, "ReMax")) {  // a second, greedy completion of each prompt as the baseline, and no critic
    scenario.generations = scenario.rewards = 2;
    scenario.models.erase("critic");
  }
  if (has_word(algo, "Safe-RLHF") || has_word(algo, "SafeRLHF")) {  // a cost model, and a pretraining loss
    scenario.rewards = 2;
    scenario.train_sets = 2;
  }
  if (has_word(algo, "GRPO") || has_word(algo, "RLOO")) scenario.models.erase("critic");
}

void read_techniques(const Row& row, Scenario& scenario) {
  const std::string text = row["parallelism"] + " " + row["placement"];
  scenario.micro_batch = whole(match(text, R"(\bMBS([0-9]+))").value_or(std::vector<std::string>{"0"})[0]);
  // DeepSpeed-Chat's fused kernels were made for OPT and GPT; LLaMA's gated layers run in many launches. It generates,
  // scores and trains in calls of one size.
  const bool deepspeed = scenario.backend == "deepspeed-chat";
  if (deepspeed)
    scenario.call_rows = scenario.micro_batch > 0 ? static_cast<double>(scenario.micro_batch)
                                                  : std::max(1.0, std::floor(kCallTokens / scenario.load.longest()));
  scenario.unfused = deepspeed && scenario.models.at("actor").gated;
  scenario.recompute = has(text, "recompute");
  // OpenRLHF's own runs and examples all keep Adam on the host.
  scenario.offload = has(text, "offload") || scenario.backend == "openrlhf";
  scenario.zero3 = has(text, "zero-3");
  scenario.searched = has(row["placement"], "searched");
  if (const int tp = whole(match(row["placement"], R"(TP([0-9]+) intra)").value_or(std::vector<std::string>{"0"})[0]))
    scenario.layouts[""] = {tp, 0, 0, 0, 0, 0};
}

// What holds for a system wherever it stands in the row.
void read_software(const Row& row, const std::string& system, Scenario& scenario) {
  scenario.fp8 = has(system, "fp8");
  scenario.sharded_training = scenario.backend == "deepspeed-chat" || scenario.backend == "openrlhf" ||
                              (scenario.backend == "verl" && !has_word(system, "Megatron"));
  if (has(row["algo"], "lora"))
    scenario.lora_rank = static_cast<int64_t>(number(row["note"], R"(LoRA dim ([0-9]{1,6}))", kUsualLoraRank));
  // PPO with a critic keeps the log-probs of its generation; fully asynchronous runs keep each row's own, which are of
  // weights that are gone.
  scenario.recomputes_log_probs = !scenario.models.contains("critic") && !has(row["phase"], "step 3") &&
                                  !has(system + row["placement"], "fully async") &&
                                  !has(system + row["placement"], "fully_async");
}

Scenario read(const Row& row, const std::string& system, bool own_setup) {
  if (!row.fault.empty()) throw NotModelled{row.fault};
  Scenario scenario;
  scenario.backend = backend_of(system);
  if (scenario.backend.empty()) throw NotModelled{"software of '" + system + "' is not modelled"};
  scenario.gpu = gpu_of(row["gpu_type"], row.kinds);
  scenario.devices = devices_of(row["n_gpus"]);
  read_models(row, scenario);
  read_algorithm(row, scenario);
  read_load(row, scenario);
  Row said = row;  // of a baseline nothing but its name
  if (!own_setup) said.columns["placement"] = said.columns["parallelism"] = "";
  said.columns["system"] = system;
  read_software(said, system, scenario);
  read_layouts(said["parallelism"], scenario);
  read_sharing(said, scenario);
  read_techniques(said, scenario);
  if (scenario.backend == "openrlhf" && scenario.sharing == Sharing::kColocated) share_in_groups(scenario);
  require_known_words(said);
  require_whole_replicas(said["parallelism"], scenario);
  return scenario;
}

}  // namespace

std::string backend_of(const std::string& system) {
  std::string name = system;
  if (has(name.substr(0, 5), "sync.") || has(name.substr(0, 5), "sync ")) name = name.substr(5);
  // The spelling tells ReaL from the word.
  if (name.starts_with("ReaL") && has_word(name, "real")) return "real";
  for (const auto& [word, backend] : kSystems)
    if (has_word(name.substr(0, std::string(word).size() + 1), word)) return backend;
  return "";
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
