#include "collimate/recipe/registry.h"

#include "collimate/rlhf/modules/advantages.h"
#include "collimate/rlhf/modules/generator.h"
#include "collimate/rlhf/modules/reward.h"
#include "collimate/rlhf/modules/trainer.h"

namespace collimate::recipe {
namespace {

template <class Module>
flow::ModuleFactory make() {
  return [](const nlohmann::json& parameters) { return std::make_unique<Module>(parameters); };
}

}  // namespace

flow::Registry module_registry() {
  flow::Registry registry;
  registry.add("generator", make<rlhf::GeneratorModule>());
  registry.add("scorer", make<rlhf::ScorerModule>());
  registry.add("trainer", make<rlhf::TrainerModule>());
  registry.add("rewards", make<rlhf::RewardModule>());
  for (const rlhf::AdvantageEntry& entry : rlhf::advantages())
    registry.add("advantages." + entry.name,
                 [&entry](const nlohmann::json& parameters) { return rlhf::advantage_module(entry, parameters); });
  return registry;
}

}  // namespace collimate::recipe
