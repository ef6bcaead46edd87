#include "collimate/recipe/list.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "collimate/base/edit_distance.h"
#include "collimate/base/error.h"
#include "collimate/base/named.h"
#include "collimate/recipe/data.h"
#include "collimate/recipe/other_names.h"
#include "collimate/recipe/page_checks.h"

namespace collimate::recipe {

// These functions are the pages, a file each.
Plan sft(const Config& config, const flow::Registry& registry);
Plan distill(const Config& config, const flow::Registry& registry);
Plan reward(const Config& config, const flow::Registry& registry);
Plan process_reward(const Config& config, const flow::Registry& registry);
Plan dpo(const Config& config, const flow::Registry& registry);
Plan kto(const Config& config, const flow::Registry& registry);
Plan grpo(const Config& config, const flow::Registry& registry);
Plan ppo(const Config& config, const flow::Registry& registry);

namespace {

constexpr const char *kAnswers = "completions", *kTaught = "taught completions";

// Learning rates are TRL 0.19's defaults of SFTConfig (of distillation too), DPOConfig, KTOConfig and GRPOConfig, that
// of its example of a reward model of which all weights train, and verl 0.4's of an actor.
std::vector<RecipeEntry>& recipe_list() {
  using enum rlhf::RowKind;
  static std::vector<RecipeEntry> list = {
      {"sft", "a model on prompts and their answers (supervised fine-tuning)", kDemonstration, {kAnswers}, 2e-5, sft},
      {"distill", "a model on a teacher's distributions in answers", kDemonstration, {kTaught}, 2e-5, distill},
      {"reward",
       "a reward model on pairs of a better and a worse answer, with margins if the rows have them",
       kPreference,
       {"scored pairs"},
       1e-5,
       reward},
      {"process_reward",
       "a process reward model on answers whose steps are labelled right or wrong",
       kSteps,
       {"labelled steps"},
       1e-5,
       process_reward},
      {"dpo",
       "a policy on pairs of a better and a worse answer, by algorithm.loss_type",
       kPreference,
       {"pairs"},
       1e-6,
       dpo},
      {"kto", "a policy on single answers that are marked desirable or not", kMarked, {"marked"}, 1e-6, kto},
      {"grpo",
       "a policy on prompts with rewards; the answers to a prompt are compared with each other",
       kPrompt,
       {"rollouts"},
       1e-6,
       grpo},
      {"ppo",
       "a policy and a value model on prompts with rewards, which rules, functions or a reward model give",
       kPrompt,
       {"rollouts", "values"},
       1e-6,
       ppo}};
  return list;
}

bool is_word(const std::string& name) {
  constexpr const char* kWord = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
  return !name.empty() && name.find_first_not_of(kWord) == std::string::npos;
}

// Returns whether a value is of the kind of its default. Numbers are of one kind, except that a default which is a
// whole number takes no fraction.
bool same_kind(const nlohmann::json& value, const nlohmann::json& standard) {
  if (standard.is_null()) return true;
  if (standard.is_number_float()) return value.is_number();
  if (standard.is_number_integer()) return value.is_number_integer();
  return value.type() == standard.type();
}

std::string kind_of_value(const nlohmann::json& value) {
  if (value.is_number_integer()) return "a whole number";
  return value.is_array() ? "a list" : value.is_object() ? "a section" : fmt::format("a {}", value.type_name());
}

}  // namespace

bool needs_teacher(const RecipeEntry& entry) {
  return std::ranges::find(entry.loss_rows, kTaught) != entry.loss_rows.end();
}

const std::vector<RecipeEntry>& recipes() { return recipe_list(); }

void register_recipe(RecipeEntry entry) {
  const auto refuse = [](const std::string& expected, const std::string& got) {
    throw base::InputError(base::expectation("register_recipe", expected, got));
  };
  if (!is_word(entry.name)) refuse("a name of letters, digits and _", "\"" + entry.name + "\"");
  if (std::ranges::find(recipes(), entry.name, &RecipeEntry::name) != recipes().end())
    refuse("a name that is free", "\"" + entry.name + "\" again");
  if (!entry.make) refuse("a function that makes the plan of " + entry.name, "none");
  if (!entry.options.is_object()) refuse("options of " + entry.name + " as {name: default}", entry.options.dump());
  recipe_list().push_back(std::move(entry));
}

nlohmann::json resolved_options(const RecipeEntry& entry, const base::ConfigNode& given) {
  const nlohmann::json values = base::to_json(given);
  const auto where = [&](const base::ConfigNode& node) { return node.where.empty() ? "options" : node.where; };
  if (!values.is_object() && !values.is_null())
    throw base::InputError(base::expectation(where(given), "options to be a section, {name: value}", values.dump()));
  if (entry.options.empty() && !values.empty())
    throw base::InputError(
        base::expectation(where(given), fmt::format("no options with recipe {}, which has none of its own", entry.name),
                          values.dump(), "leaving them out"));
  std::vector<std::string> known;
  for (const auto& [name, standard] : entry.options.items()) known.push_back(name);
  nlohmann::json all = entry.options;
  for (size_t i = 0; i < given.keys.size(); ++i) {
    const std::string& name = given.keys[i];
    const std::string place = where(given.children[i]);
    if (!all.contains(name))
      base::throw_unknown_name(place, name, known, fmt::format("an option of recipe {}, ", entry.name));
    const nlohmann::json value = base::to_json(given.children[i]);
    if (!same_kind(value, entry.options.at(name)))
      throw base::InputError(base::expectation(
          place, fmt::format("options.{} to be {}", name, kind_of_value(entry.options.at(name))), value.dump()));
    all[name] = value;
  }
  return all;
}

std::vector<std::string> recipe_names() { return base::names_of(recipes()); }

const RecipeEntry& find_recipe(const std::string& name) {
  for (const RecipeEntry& entry : recipes())
    if (entry.name == name) return entry;
  if (const std::string remedy = remedy_for_recipe(name); !remedy.empty())
    throw base::InputError(base::expectation("recipe", fmt::format("one of {}", fmt::join(recipe_names(), ", ")),
                                             fmt::format("'{}'", name), remedy));
  base::throw_unknown_choice("recipe", name, recipe_names());
}

Plan make_plan(const Config& config, const flow::Registry& registry) {
  const RecipeEntry& entry = find_recipe(config.recipe);
  Plan plan = entry.make(config, registry);
  check_page(entry.name, plan);
  plan.rows = entry.rows;
  plan.plugins = config.plugins;
  for (const std::string& option : data_options(entry.rows)) plan.read_options.insert(option);
  return plan;
}

}  // namespace collimate::recipe
