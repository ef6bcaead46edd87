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
  // These are the keys that `options` of a config may have with this recipe, with their defaults: {"target": 8}. A
  // value is of the kind of its default, or of any kind where the default is null. The page reads them in
  // `config.options`, where every key has a value.
  nlohmann::json options = nlohmann::json::object();
};

// Returns whether the recipe trains by losses on what a teacher says, so that its config has to name a teacher.
bool needs_teacher(const RecipeEntry& entry);

// Returns all recipes. What a config may name, its help and the tests' table follow from this list.
const std::vector<RecipeEntry>& recipes();
// Puts a recipe of the program's own at the end of that list. Call it before configs are read and runs start, in every
// process that works for the run; it is not thread-safe. Throws InputError when the name is taken or is no word, when
// the page is missing, or when `options` is no object.
void register_recipe(RecipeEntry entry);
std::vector<std::string> recipe_names();
// Returns the recipe of this name. Throws InputError, with the known names, for an unknown one.
const RecipeEntry& find_recipe(const std::string& name);
// Returns `options` of a config for this recipe: the values that are given, and the defaults of the others. Throws
// InputError, at the place where it was written, for a key that the recipe does not have and for a value of another
// kind.
nlohmann::json resolved_options(const RecipeEntry& entry, const base::ConfigNode& given);
// Makes the page's plan and checks it with check_page. It may leave options unread, which complete_plan (prepare.h)
// refuses.
Plan make_plan(const Config& config, const flow::Registry& registry);

}  // namespace collimate::recipe
