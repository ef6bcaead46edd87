#include "collimate/recipe/config.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "collimate/base/config_yaml.h"
#include "collimate/base/error.h"
#include "collimate/base/unknown_keys.h"
#include "collimate/host/base_model.h"
#include "collimate/host/hub_download.h"
#include "collimate/recipe/attempt.h"
#include "collimate/recipe/chatlearn/chatlearn.h"
#include "collimate/recipe/check.h"
#include "collimate/recipe/data.h"
#include "collimate/recipe/evaluation/asked_measures.h"
#include "collimate/recipe/list.h"
#include "collimate/recipe/other_names.h"
#include "collimate/recipe/plugins.h"
#include "collimate/recipe/preset.h"
#include "collimate/rlhf/reward/reward.h"
#include "collimate/shape/model_shape.h"

namespace collimate::recipe {
namespace {

// Returns what file and --set say of a key, with the place of each part; null for nothing. `section`: "" for the root.
const base::ConfigNode* written(const base::ConfigNode& root, const std::string& section, const std::string& key) {
  const base::ConfigNode* parent = section.empty() ? &root : root.find(section);
  const base::ConfigNode* found = parent == nullptr ? nullptr : parent->find(key);
  return found == nullptr || found->kind == base::ConfigNode::Kind::kNull ? nullptr : found;
}

// Returns the rows of an update where a config sets none: 32 examples, as in Ouyang et al. 2022 (appendix C, SFT) and
// Tunstall et al. 2023 (Zephyr, DPO), or 0 where rows are samples, as all of an iteration make one update.
int64_t usual_rows(const Config& config) {
  constexpr int64_t kExamples = 32;
  const rlhf::RowKind rows = find_recipe(config.recipe).rows;
  if (rows == rlhf::RowKind::kPrompt) return 0;
  return rows == rlhf::RowKind::kPreference ? 2 * kExamples : kExamples;
}

}  // namespace

// Adapters take about ten times the rate of all weights (Schulman et al. 2025, "LoRA Without Regret").
double usual_rate(const Config& config) {
  constexpr double kOfAdapters = 10;
  const rlhf::ModelOptions* policy = config.models.find("policy");
  const bool adapters = policy != nullptr && policy->lora.rank > 0;
  const double rate = find_recipe(config.recipe).learning_rate * (adapters ? kOfAdapters : 1.0);
  return std::stod(fmt::format("{:.6g}", rate));  // 1e-5 and not 9.999999999999999e-06
}

text::TrainOn DataOptions::trained_tokens() const {
  if (train_on.get() == "all_tokens") return text::TrainOn::kAllTokens;
  return train_on.get() == "assistant_turns" ? text::TrainOn::kAssistantTurns : text::TrainOn::kCompletion;
}

rlhf::LongRows DataOptions::long_row_choice() const { return rlhf::long_rows_of(long_rows); }

rlhf::LastBatch DataOptions::last_batch_choice() const {
  if (last_batch == std::string("retain")) return rlhf::LastBatch::kRetain;
  return last_batch == std::string("drop") ? rlhf::LastBatch::kDrop : rlhf::LastBatch::kCycle;
}

Config::Config()
    : recipe(this, "recipe", "", "", "what to train, and how; collimate help recipes describes each",
             base::one_of(recipe_names())),
      preset(this, "preset", std::nullopt, "",
             "constants of another program, in the place of defaults; collimate help presets lists them",
             base::one_of(preset_names()), base::outside_hash{}) {}

const rlhf::ModelOptions& Config::model(const std::string& role) const {
  for (const std::string& name : {role, std::string("policy")})
    if (const rlhf::ModelOptions* found = models.find(name)) return *found;
  throw base::InputError(
      base::expectation("models", "a model \"policy\"", "none", "models: {policy: {path: DIRECTORY}}"));
}

namespace {

// Holds the lists of a config whose entries have options by kind; nothing for a list that the config does not have.
struct Lists {
  std::optional<nlohmann::json> reward, evaluation_reward, measure;
};

Lists read_lists(const base::ConfigNode& root, std::vector<std::string>& wrong) {
  Lists lists;
  if (const auto* list = written(root, "", "reward"))
    attempt(wrong, [&] { lists.reward = rlhf::resolved_rewards(*list, "reward"); });
  if (const auto* list = written(root, "evaluation", "reward"))
    attempt(wrong, [&] { lists.evaluation_reward = rlhf::resolved_rewards(*list, "evaluation.reward"); });
  if (const auto* list = written(root, "evaluation", "measure"))
    attempt(wrong, [&] { lists.measure = resolved_measures(*list, "evaluation.measure"); });
  for (const char* key : {"train", "eval", "ptx"})
    if (const auto* sources = written(root, "data", key))
      attempt(wrong, [&] { check_source_keys(*sources, fmt::format("data.{}", key)); });
  return lists;
}

// Returns the preset that a config names, null for none. Throws InputError for a name that is none.
const Preset* preset_of(const base::ConfigNode& root) {
  const base::ConfigNode* node = root.find("preset");
  if (node == nullptr || base::to_json(*node).is_null()) return nullptr;
  const auto found = std::ranges::find(presets(), node->text, &Preset::name);
  if (found != presets().end()) return &*found;
  throw base::InputError(base::expectation(
      node->where, fmt::format("preset to be one of {}", fmt::join(preset_names(), ", ")), node->description()));
}

// Throws InputError for a recipe by its name in another program. Any other unknown name is the option's to refuse.
void refuse_other_recipe(const base::ConfigNode& root) {
  const base::ConfigNode* node = root.find("recipe");
  const std::vector<std::string> known = recipe_names();
  if (node == nullptr || std::ranges::find(known, node->text) != known.end()) return;
  if (const std::string remedy = remedy_for_recipe(node->text); !remedy.empty())
    throw base::InputError(base::expectation(node->where,
                                             fmt::format("recipe to be one of \"{}\"", fmt::join(known, "\", \"")),
                                             node->description(), remedy));
}

// Returns how long rows may be: as data.max_tokens has it by default, or as the policy can read, whichever is less.
int64_t usual_tokens(const Config& config) {
  const int64_t usual = config.data.max_tokens;
  const rlhf::ModelOptions* policy = config.models.find("policy");
  if (policy == nullptr || find_recipe(config.recipe).rows == rlhf::RowKind::kPrompt) return usual;
  try {
    return std::min(usual, shape::read_model_shape(host::base_directory(policy->path)).positions());
  } catch (const std::exception&) {
    return usual;  // what is wrong with the model is said where it is read
  }
}

// Reads a config, of which every key is looked at before any value. `name` is what an error calls the whole.
Config read_config(const base::ConfigSource& source, const std::string& name) {
  const std::vector<std::string> plugins = load_plugins_of(source.root);  // first: all else may name their parts
  Config config;
  std::vector<std::string> wrong = base::unknown_keys(source.root, "", config);  // a misspelt `recipe` may be one
  const Lists lists = read_lists(source.root, wrong);
  refuse(wrong);
  const Preset* preset = preset_of(source.root);
  if (preset == nullptr && source.root.find("recipe") == nullptr)
    throw base::InputError(base::expectation(name, "a key recipe", "none", "recipe: grpo"));
  refuse_other_recipe(source.root);
  if (const base::ConfigNode* models = source.root.find("models");
      models != nullptr && models->kind == base::ConfigNode::Kind::kScalar)
    throw base::InputError(base::expectation(models->where, "models by their roles", models->description(),
                                             fmt::format("models: {{policy: {}}}", models->text)));
  if (preset != nullptr) base::apply({preset_values(*preset)}, config);
  base::apply(source, config);
  if (preset != nullptr && config.recipe.get() != preset->recipe)
    throw base::InputError(base::expectation("recipe", fmt::format("{} with preset {}", preset->recipe, preset->name),
                                             config.recipe.get(), "another preset, or none"));
  config.plugins = plugins;
  const base::ConfigNode* options = written(source.root, "", "options");
  config.options = resolved_options(find_recipe(config.recipe), options == nullptr ? base::ConfigNode() : *options);
  if (lists.reward) config.reward = *lists.reward;
  if (lists.evaluation_reward) config.evaluation.reward = *lists.evaluation_reward;
  if (lists.measure) config.evaluation.measure = *lists.measure;
  for (const auto& [role, model] : config.models)
    if (const std::string found = host::model_directory(model.path, config.download); found != model.path.get())
      config.models[role].path = found;
  if (auto& draft = config.rollout.speculation.draft_model; !draft->empty())
    draft = host::model_directory(draft, config.download);
  if (config.train.samples_per_update == 0) config.train.samples_per_update = usual_rows(config);
  if (config.data.max_tokens.where().empty()) config.data.max_tokens = usual_tokens(config);
  if (!config.train.learning_rate->has_value()) config.train.learning_rate = usual_rate(config);
  return config;
}

}  // namespace

Config load(const std::string& path, const std::vector<std::string>& sets) {
  const Config schema;
  if (!is_chatlearn(path)) return read_config(base::load_config(path, sets, &schema), path);
  base::ConfigSource source{from_chatlearn(path, sets).root};
  base::override_values(source.root, sets, &schema);
  return read_config(source, path);
}

Config load_values(const nlohmann::json& values, const std::vector<std::string>& sets) {
  const Config schema;
  base::ConfigSource source{base::from_json(values, "config")};
  base::override_values(source.root, sets, &schema);
  return read_config(source, "config");
}

Config load_source(const base::ConfigSource& source, const std::string& name) { return read_config(source, name); }

}  // namespace collimate::recipe
