// A plugin whose registration fails half way.
#include "collimate/collimate.h"

COLLIMATE_PLUGIN {
  collimate::register_reward("of_throws", [](const nlohmann::json&) {
    return collimate::function_reward([](const collimate::RewardSample&) { return 0.0; });
  });
  collimate::register_recipe({.name = "grpo"});
}
