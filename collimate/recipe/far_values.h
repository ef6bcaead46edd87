#pragma once

#include <string>
#include <vector>

#include "collimate/recipe/config.h"
#include "collimate/shape/model_shape.h"

namespace collimate::recipe {

// A learning rate above this is far from what trains a policy of such a width by the config's recipe.
double most_rate(const Config& config, int64_t width);

// Says, each in the form of base/error.h, which values of a config are far from what trains its models, or beyond what
// its policy can read: learning rates; and limits of rows beyond its positions, which win over them. Nothing refuses
// these. `value`: the value model's shape, null where the recipe trains none.
std::vector<std::string> far_values(const Config& config, const shape::ModelShape& policy,
                                    const shape::ModelShape* value = nullptr);

}  // namespace collimate::recipe
