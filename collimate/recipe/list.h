#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "collimate/recipe/page.h"

namespace collimate::recipe {

struct RecipeEntry {
  std::string name;     // as the key `recipe` has it
  std::string summary;  // one line: what it trains on what ("a policy on prompts with rewards")
  rlhf::RowKind rows;
  std::vector<std::string> loss_rows;  // LossEntry::rows of the losses that it trains by
  double learning_rate;                // where the config sets none; ten times that with adapters
  std::function<Plan(const Config& config, const flow::Registry& registry)> make;
  // The keys that `options` of a config may have with this recipe, with their defaults: {"target": 8}. A value is of
  // the kind of its default, of any kind where that is null. The page reads them in `config.options`, which has them
  // all.
  nlohmann::json options = nlohmann::json::object();
};

// Whether it trains by losses on what a teacher says, which a config then names.
bool needs_teacher(const RecipeEntry& entry);

// The pages. From this list follow what a config may name, its help and the tests' table.
const std::vector<RecipeEntry>& recipes();
// Puts a recipe of a program's own at the end of that list. Call it before configs are read and runs start, in every
// process that works for the run; not thread-safe. InputError when the name is taken or no word, or without a page.
void register_recipe(RecipeEntry entry);
std::vector<std::string> recipe_names();
// InputError for an unknown name, with the known ones.
const RecipeEntry& find_recipe(const std::string& name);
// `options` of a config for this recipe: those that are given, and the defaults of the others. InputError, at the
// place where it was written, for a key that the recipe does not have and for a value of another kind.
nlohmann::json resolved_options(const RecipeEntry& entry, const base::ConfigNode& given);
// The page's plan, which is as check_page asks. It may leave options unread: complete_plan (prepare.h) refuses them.
Plan make_plan(const Config& config, const flow::Registry& registry);

}  // namespace collimate::recipe
