#include "collimate/recipe/registry.h"

#include "collimate/rlhf/modules/advantages.h"
#include "collimate/rlhf/modules/generator.h"
#include "collimate/rlhf/modules/kl_estimate.h"
#include "collimate/rlhf/modules/mixed_groups.h"
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
  registry.add("mixed_groups", [](const nlohmann::json&) { return rlhf::mixed_groups_module(); });
  registry.add("kl_estimate", [](const nlohmann::json&) { return rlhf::kl_estimate_module(); });
  for (const rlhf::AdvantageEntry& entry : rlhf::advantages())
    registry.add("advantages." + entry.name, [&entry](const nlohmann::json& parameters) {
      return std::make_unique<rlhf::AdvantageModule>(entry, parameters);
    });
  return registry;
}

}  // namespace collimate::recipe
