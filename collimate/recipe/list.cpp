#include "collimate/recipe/list.h"

#include "collimate/base/error.h"

namespace collimate::recipe {

// The pages, a file each.
Plan sft(const Config& config, const flow::Registry& registry);
Plan reward(const Config& config, const flow::Registry& registry);
Plan dpo(const Config& config, const flow::Registry& registry);
Plan grpo(const Config& config, const flow::Registry& registry);
Plan ppo(const Config& config, const flow::Registry& registry);

const std::vector<RecipeEntry>& recipes() {
  using rlhf::RowKind;
  static const std::vector<RecipeEntry> list = {{"sft", RowKind::kDemonstration, sft},
                                                {"reward", RowKind::kPreference, reward},
                                                {"dpo", RowKind::kPreference, dpo},
                                                {"grpo", RowKind::kPrompt, grpo},
                                                {"ppo", RowKind::kPrompt, ppo}};
  return list;
}

std::vector<std::string> recipe_names() {
  std::vector<std::string> names;
  for (const RecipeEntry& entry : recipes()) names.push_back(entry.name);
  return names;
}

const RecipeEntry& find_recipe(const std::string& name) {
  for (const RecipeEntry& entry : recipes())
    if (entry.name == name) return entry;
  throw base::InputError(
      base::expectation("recipe", fmt::format("one of {}", fmt::join(recipe_names(), ", ")), "\"" + name + "\""));
}

Plan make_plan(const Config& config, const flow::Registry& registry) {
  const RecipeEntry& entry = find_recipe(config.recipe);
  Plan plan = entry.make(config, registry);
  plan.rows = entry.rows;
  return plan;
}

}  // namespace collimate::recipe
