#pragma once

#include <string>
#include <vector>

#include "collimate/recipe/config.h"
#include "collimate/shape/model_shape.h"

namespace collimate::recipe {

// Returns the learning rate above which a rate is far from what trains a policy of this width (hidden size) by the
// config's recipe.
double most_rate(const Config& config, int64_t width);

// Returns a text in the form of base/error.h for each value of a config that is far from what trains its models or
// beyond what its policy can read. Such values are learning rates, and limits of rows beyond the policy's positions,
// which win over these limits. None of them is refused. `value`: the value model's shape, null where the recipe trains
// none.
std::vector<std::string> far_values(const Config& config, const shape::ModelShape& policy,
                                    const shape::ModelShape* value = nullptr);

}  // namespace collimate::recipe
