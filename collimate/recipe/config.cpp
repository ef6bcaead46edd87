#include "collimate/recipe/config.h"

#include "collimate/base/error.h"

namespace collimate::recipe {

text::TrainOn DataOptions::trained_tokens() const {
  if (train_on.get() == "all_tokens") return text::TrainOn::kAllTokens;
  return train_on.get() == "assistant_turns" ? text::TrainOn::kAssistantTurns : text::TrainOn::kCompletion;
}

Config load(const std::string& path, const std::vector<std::string>& sets) {
  Config config;
  base::apply(base::load_config(path, sets), config);
  if (config.recipe->empty()) throw base::InputError(base::expectation(path, "a key recipe", "none", "recipe: grpo"));
  return config;
}

}  // namespace collimate::recipe
