#pragma once

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>

#include "collimate/model/model.h"
#include "tests/support/model/edit_weights.h"

namespace collimate::golden {

// The formula of make_families.py: value number `i` of a tensor of a file.
inline double wave(const std::string& name, int64_t i) {
  const double value = 0.4 * std::sin(0.7311 * static_cast<double>(i) + std::accumulate(name.begin(), name.end(), 0.0));
  return name.ends_with("norm.weight") ? 1 + value / 4 : value;
}

// Visits (its number here, in the file) of each value of a parameter.
template <class Visit>
void for_each_value(const shape::ParamSpec& spec, const Visit& visit) {
  const int64_t width = spec.count() / spec.sizes[0];
  for (int64_t i = 0; i < spec.count(); ++i) visit(i, spec.file_row(i / width) * width + i % width);
}

// A model of that config.json with these weights.
inline std::shared_ptr<model::Weights> family_weights(const nlohmann::json& config,
                                                      model::WeightsOptions options = {}) {
  auto weights = std::make_shared<model::Weights>(shape::parse_model_shape(config, "families.json"), std::move(options),
                                                  tensor::Exec{});
  for (size_t p = 0; p < weights->params().size(); ++p) {
    const tensor::HostEdit values = model::testing::edit_of(*weights, static_cast<int>(p));
    for_each_value(weights->params()[p], [&](int64_t here, int64_t in_file) {
      values[here] = static_cast<float>(wave(weights->params()[p].name, in_file));
    });
  }
  weights->commit();
  return weights;
}

}  // namespace collimate::golden
