#pragma once

#include <string>
#include <vector>

#include "collimate/recipe/page.h"

namespace collimate::recipe {

struct RecipeEntry {
  std::string name;     // as the key `recipe` has it
  std::string summary;  // one line: what it trains on what
  rlhf::RowKind rows;
  std::vector<std::string> loss_rows;  // LossEntry::rows of the losses that it trains by
  double learning_rate;                // where the config sets none; ten times that with adapters
  Plan (*make)(const Config& config, const flow::Registry& registry);
};

// The pages. From this list follow what a config may name, its help and the tests' table.
const std::vector<RecipeEntry>& recipes();
std::vector<std::string> recipe_names();
// InputError for an unknown name, with the known ones.
const RecipeEntry& find_recipe(const std::string& name);
// The page's plan. It may leave options of the config unread: complete_plan (recipe/prepare.h) refuses them.
Plan make_plan(const Config& config, const flow::Registry& registry);

}  // namespace collimate::recipe
