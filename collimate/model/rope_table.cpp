#include "collimate/model/rope_table.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace collimate::model {
namespace {

// Llama 3.1's rule: long wavelengths are divided by the factor, short ones kept, those between blended.
float scale_llama3(float inverse, const nlohmann::json& scaling) {
  const auto factor = scaling.at("factor").get<float>(), low = scaling.at("low_freq_factor").get<float>();
  const auto high = scaling.at("high_freq_factor").get<float>();
  const auto original = scaling.at("original_max_position_embeddings").get<float>();
  const float wavelength = 2 * std::numbers::pi_v<float> / inverse;
  if (wavelength > original / low) return inverse / factor;
  if (wavelength < original / high) return inverse;
  const float smooth = (original / wavelength - low) / (high - low);
  return (1 - smooth) * inverse / factor + smooth * inverse;
}

}  // namespace

std::vector<float> rope_inverse_frequencies(const shape::ModelShape& shape) {
  const std::string type =
      shape.rope_scaling.is_null() ? "default" : shape.rope_scaling.at("rope_type").get<std::string>();
  std::vector<float> inverse;
  const int64_t turned = shape.blocks.front().attention.turned();
  for (int64_t pair = 0; pair < turned / 2; ++pair) {
    const float exponent = static_cast<float>(2 * pair) / static_cast<float>(turned);
    float value = 1.0F / std::pow(static_cast<float>(shape.rope_theta), exponent);
    if (type == "linear") value /= shape.rope_scaling.at("factor").get<float>();
    if (type == "llama3") value = scale_llama3(value, shape.rope_scaling);
    inverse.push_back(value);
  }
  return inverse;
}

RopeCache::RopeCache(const shape::ModelShape& shape, const tensor::Exec& exec)
    : exec_(exec), inverse_frequencies_(rope_inverse_frequencies(shape)) {}

const tensor::RopeTable& RopeCache::cover(int64_t count) {
  if (count <= table_.positions) return table_;
  const int64_t positions = std::max(count, std::max<int64_t>(256, 2 * table_.positions));
  const auto half = static_cast<int64_t>(inverse_frequencies_.size());
  for (int64_t position = table_.positions; position < positions; ++position) {
    for (const float inverse : inverse_frequencies_) {
      const float angle = static_cast<float>(position) * inverse;
      cos_.push_back(static_cast<float>(std::cos(static_cast<double>(angle))));
      sin_.push_back(static_cast<float>(std::sin(static_cast<double>(angle))));
    }
  }
  device_cos_ = {exec_, cos_};
  device_sin_ = {exec_, sin_};
  table_ = {device_cos_.data(), device_sin_.data(), positions, static_cast<int>(2 * half)};
  return table_;
}

}  // namespace collimate::model
