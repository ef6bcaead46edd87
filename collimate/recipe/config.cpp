#include "collimate/recipe/config.h"

#include "collimate/base/error.h"

namespace collimate::recipe {

Config load(const std::string& path, const std::vector<std::string>& sets) {
  Config config;
  base::apply(base::load_config(path, sets), config);
  if (config.recipe->empty()) throw base::InputError(base::expectation(path, "a key recipe", "none", "recipe: grpo"));
  return config;
}

}  // namespace collimate::recipe
