#include "collimate/recipe/registry.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "collimate/base/error.h"
#include "collimate/rlhf/modules/advantages.h"
#include "collimate/rlhf/modules/finished_samples.h"
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

using OwnModule = std::pair<std::string, flow::ModuleFactory>;

std::vector<OwnModule>& own_modules() {
  static std::vector<OwnModule> all;
  return all;
}

}  // namespace

void register_module(const std::string& kind, flow::ModuleFactory factory) {
  const std::vector<std::string> taken = module_registry().kinds();
  if (std::ranges::find(taken, kind) != taken.end())
    throw base::InputError(base::expectation("register_module", "a name that is free", "\"" + kind + "\" again"));
  own_modules().emplace_back(kind, std::move(factory));
}

flow::Registry module_registry() {
  flow::Registry registry;
  registry.add("generator", make<rlhf::GeneratorModule>());
  registry.add("scorer", make<rlhf::ScorerModule>());
  registry.add("trainer", make<rlhf::TrainerModule>());
  registry.add("rewards", make<rlhf::RewardModule>());
  registry.add("mixed_groups", [](const nlohmann::json&) { return rlhf::mixed_groups_module(); });
  registry.add("finished_samples", [](const nlohmann::json& parameters) {
    return rlhf::finished_samples_module(parameters.value("min_samples", int64_t{0}));
  });
  registry.add("kl_estimate", [](const nlohmann::json&) { return rlhf::kl_estimate_module(); });
  for (const rlhf::AdvantageEntry& entry : rlhf::advantages())
    registry.add("advantages." + entry.name, [&entry](const nlohmann::json& parameters) {
      return std::make_unique<rlhf::AdvantageModule>(entry, parameters);
    });
  for (const auto& [kind, factory] : own_modules()) registry.add(kind, factory);
  return registry;
}

}  // namespace collimate::recipe
