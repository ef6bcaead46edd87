#include "collimate/recipe/placement_forms.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "collimate/base/error.h"
#include "collimate/graph/forms.h"

namespace collimate::recipe {
namespace {

constexpr const char* kSeparation = "separation";

bool is_separation(const nlohmann::json& placement) {
  return placement == kSeparation ||
         (placement.is_object() && placement.size() == 1 && placement.contains(kSeparation));
}

// Returns how many devices of `separation` train.
int training_devices(const nlohmann::json& placement, int devices) {
  const nlohmann::json given = placement.is_object() ? placement.at(kSeparation) : nlohmann::json(0.5);
  const double number = given.is_number() ? given.get<double>() : 0;
  if (number > 0 && number < 1) return std::clamp(static_cast<int>(std::lround(number * devices)), 1, devices - 1);
  if (number >= 1 && number < devices && number == std::floor(number)) return static_cast<int>(number);
  throw base::InputError(base::expectation(
      "placement.separation",
      fmt::format("the share of devices that train, between 0 and 1, or how many of the {} do", devices), given.dump(),
      "placement: {separation: 0.5}"));
}

}  // namespace

bool is_form(const Config& config) {
  const nlohmann::json& placement = config.placement;
  return placement == "flattening" || placement == "interleaving" || is_separation(placement);
}

std::optional<graph::Placement> placement_of_form(const Config& config, const Plan& plan) {
  const nlohmann::json& named = config.placement;
  const int devices = static_cast<int>(config.devices.get());
  if (!is_form(config) || named == "flattening") return std::nullopt;
  if (is_separation(named) && devices < 2)
    throw base::InputError(base::expectation("devices", "at least 2 for placement: separation", std::to_string(devices),
                                             "devices: 2, or placement: flattening"));
  graph::Placement made = is_separation(named)
                              ? graph::separation(plan.graph, devices, training_devices(named, devices))
                              : graph::interleaving(plan.graph, devices);
  for (const std::string& trainer : plan.trainers)
    if (made.group_of(trainer)->devices.size() > 1)
      made.layouts[trainer]["train"].zero = static_cast<int>(config.zero.get());
  return made;
}

}  // namespace collimate::recipe
