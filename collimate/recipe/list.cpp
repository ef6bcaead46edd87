#include "collimate/recipe/list.h"

#include "collimate/base/error.h"
#include "collimate/base/named.h"
#include "collimate/recipe/data.h"

namespace collimate::recipe {

// The pages, a file each.
Plan sft(const Config& config, const flow::Registry& registry);
Plan reward(const Config& config, const flow::Registry& registry);
Plan dpo(const Config& config, const flow::Registry& registry);
Plan kto(const Config& config, const flow::Registry& registry);
Plan grpo(const Config& config, const flow::Registry& registry);
Plan ppo(const Config& config, const flow::Registry& registry);

// Rates: TRL 0.19's defaults of SFTConfig, DPOConfig, KTOConfig and GRPOConfig, its example of a reward model of which
// all weights train, and verl 0.4's of an actor.
const std::vector<RecipeEntry>& recipes() {
  using rlhf::RowKind;
  static const std::vector<RecipeEntry> list = {
      {"sft",
       "a model on prompts and their answers (supervised fine-tuning)",
       RowKind::kDemonstration,
       {"completions"},
       2e-5,
       sft},
      {"reward",
       "a reward model on pairs of a better and a worse answer, with margins if the rows have them",
       RowKind::kPreference,
       {"scored pairs"},
       1e-5,
       reward},
      {"dpo",
       "a policy on pairs of a better and a worse answer, by algorithm.loss_type",
       RowKind::kPreference,
       {"pairs"},
       1e-6,
       dpo},
      {"kto", "a policy on single answers that are marked desirable or not", RowKind::kMarked, {"marked"}, 1e-6, kto},
      {"grpo",
       "a policy on prompts with rewards; the answers to a prompt are compared with each other",
       RowKind::kPrompt,
       {"rollouts"},
       1e-6,
       grpo},
      {"ppo",
       "a policy and a value model on prompts with rewards, which rules, functions or a reward model give",
       RowKind::kPrompt,
       {"rollouts", "values"},
       1e-6,
       ppo}};
  return list;
}

std::vector<std::string> recipe_names() { return base::names_of(recipes()); }

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
  for (const std::string& option : data_options(entry.rows)) plan.read_options.insert(option);
  return plan;
}

}  // namespace collimate::recipe
