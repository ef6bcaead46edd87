#include "collimate/recipe/pipeline.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "collimate/base/config_text.h"
#include "collimate/base/config_yaml.h"
#include "collimate/base/error.h"
#include "collimate/base/unknown_keys.h"
#include "collimate/host/base_model.h"
#include "collimate/host/cpu.h"
#include "collimate/host/hub_download.h"
#include "collimate/recipe/attempt.h"
#include "collimate/recipe/data.h"
#include "collimate/recipe/run_directory.h"
#include "collimate/recipe/run_files.h"
#include "collimate/shape/model_shape.h"

namespace collimate::recipe {
namespace {

namespace fs = std::filesystem;
using base::expectation;
using base::InputError;

constexpr size_t kPpo = 2;

// A row has at most so many tokens, and a prompt and an answer so many each, as DeepSpeed-Chat has it where the models
// have room.
constexpr int64_t kMostRowTokens = 512, kMostPromptTokens = 256;

int64_t positions_of_model(const std::string& directory) {
  return shape::read_model_shape(host::base_directory(directory)).positions();
}

nlohmann::json sources_of(const nlohmann::json& value) { return value.is_array() ? value : nlohmann::json{value}; }

void require_model(const std::string& option, std::string& path, bool download) {
  if (path.empty())
    throw InputError(
        expectation(option, "a model's directory, or its name on a hub", "nothing", option + " DIRECTORY"));
  path = host::model_directory(path, download);
  if (!fs::is_directory(path))
    throw InputError(expectation(option, "a model directory", path + ", which is not there", host::hub_remedy(path)));
}

}  // namespace

const std::array<PipelineStep, kPipelineSteps>& pipeline_steps() {
  static constexpr std::array<PipelineStep, kPipelineSteps> kSteps = {
      {{"1-sft", "sft", "supervised fine-tuning of the actor"},
       {"2-reward", "reward", "a reward model from pairs"},
       {"3-ppo", "ppo", "PPO of the actor by the reward model"}}};
  return kSteps;
}

void PipelineOptions::section_demands(const std::string& path) const {
  split_shares(data_split, data_split.where().empty() ? "data_split" : data_split.where());
  if (deployment_type.get() == "multi_node")
    deployment_type.item_refuse(path, "single_gpu or single_node", "recipes run on one machine");
}

Pipeline::Pipeline(const std::string& file, const std::vector<std::string>& sets, std::string output)
    : output_(std::move(output)) {
  base::ConfigSource source;
  if (file.empty()) {
    source.root.kind = base::ConfigNode::Kind::kMap;
    base::override_values(source.root, sets, &options_);
  } else {
    source = base::load_config(file, sets, &options_);
  }
  refuse(base::unknown_keys(source.root, "", options_));
  base::apply(source, options_);
  root_ = std::move(source.root);
  std::string actor = options_.actor_model, reward = options_.reward_model;
  require_model("--actor-model", actor, options_.download);
  require_model("--reward-model", reward, options_.download);
  options_.actor_model = actor;
  options_.reward_model = reward;
  if (options_.data->is_null())
    throw InputError(expectation("--data", "a file of pairs", "nothing", "--data FILE.jsonl"));
  for (const text::DataSource& data : data_sources(options_.data, "data"))
    if (data.weight != 1)
      throw InputError(
          expectation("data.weight", "1, as each row is in one step", fmt::to_string(data.weight),
                      "leaving it out, or weights in sft.data.train, reward.data.train and ppo.data.train"));
}

std::string Pipeline::directory(size_t step) const {
  return (fs::path(output_) / pipeline_steps().at(step).folder).string();
}

SplitRequest Pipeline::split_request() const {
  return {.sources = data_sources(options_.data, "data"),
          .drop_bad_rows = options_.bad_rows.get() == "drop",
          .shares = options_.data_split,
          .seed = static_cast<uint64_t>(options_.seed.get())};
}

// Returns the part of a step's config that makes it a step of this pipeline, with the lengths of DeepSpeed-Chat.
nlohmann::json Pipeline::wiring(size_t step) const {
  const PipelineStep& entry = pipeline_steps().at(step);
  const std::string rows = (fs::path(output_) / "data" / (std::string(entry.folder) + ".jsonl")).string();
  nlohmann::json values = {{"recipe", entry.recipe},
                           {"data", {{"train", {rows}}, {"val_size", options_.val_size.get()}, {"long_rows", "drop"}}},
                           {"run", {{"epochs", 1}, {"seed", options_.seed.get()}}}};
  if (options_.deployment_type.get() == "single_node") values["devices"] = host::thread_count();
  const std::string &actor = options_.actor_model, &base = options_.reward_model;
  if (step == kPpo) {
    const int64_t positions = std::min(positions_of_model(actor), positions_of_model(base));
    const int64_t prompt = std::min(kMostPromptTokens, positions / 2);
    values["preset"] = "deepspeed-chat-ppo";
    values["models"] = {
        {"policy", {{"path", model(0)}}}, {"value", {{"path", model(1)}}}, {"reward", {{"path", model(1)}}}};
    values["rollout"] = {{"prompts_per_iteration", 16},
                         {"samples_per_prompt", 1},
                         {"prompt_tokens", prompt},
                         {"completion_tokens", std::min(kMostPromptTokens, positions - prompt)}};
    values["train"] = {{"warmup_updates", 0}};
    return values;
  }
  values["models"]["policy"]["path"] = step == 0 ? actor : base;
  values["data"]["max_tokens"] = std::min(kMostRowTokens, positions_of_model(step == 0 ? actor : base));
  if (step == 0 && !options_.sft_data->is_null())
    for (const nlohmann::json& more : sources_of(options_.sft_data)) values["data"]["train"].push_back(more);
  return values;
}

base::ConfigNode Pipeline::values(size_t step) const {
  base::ConfigNode node = base::from_json(wiring(step), "pipeline");
  for (const char* section : {"all", pipeline_steps().at(step).recipe})
    if (const base::ConfigNode* own = root_.find(section)) base::merge(node, base::ConfigNode(*own));
  return node;
}

Config Pipeline::config(size_t step) const {
  try {
    return load_source({values(step)}, pipeline_steps().at(step).folder);
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: {}", pipeline_steps().at(step).folder, error.what()));
  }
}

std::string Pipeline::yaml(size_t step) const { return base::block_yaml(values(step)) + "\n"; }

Findings Pipeline::check(size_t step) const {
  const std::string name = pipeline_steps().at(step).folder;
  Config config = this->config(step);
  std::vector<std::string> changed;
  if (holds_run(directory(step)) && !holds_nothing_learned(directory(step)))
    changed = refused_changes(directory(step), config);
  Findings found;
  if (step != kPpo) {
    found = recipe::check(config);
  } else {
    const auto stand_in = [&](const std::string& path) -> std::string {
      return path == model(0) ? options_.actor_model : path == model(1) ? options_.reward_model : path;
    };
    for (const auto& [role, section] : config.models) config.models[role].path = stand_in(section.path);
    found = recipe::check(config, WeightFiles::kNotYet);
  }
  if (!changed.empty())
    found.problems.push_back(
        expectation("--output", "the values that the step began with",
                    fmt::format("{} of another config ({})", directory(step), fmt::join(changed, "; ")),
                    "those, or another --output"));
  for (std::string& problem : found.problems) problem = fmt::format("{}: {}", name, problem);
  return found;
}

bool Pipeline::has_begun() const {
  for (size_t step = 0; step < kPipelineSteps; ++step)
    if (holds_run(directory(step)) && !holds_nothing_learned(directory(step))) return true;
  return false;
}

}  // namespace collimate::recipe
