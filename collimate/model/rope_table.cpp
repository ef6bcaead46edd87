#include "collimate/model/rope_table.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace collimate::model {
namespace {

// Applies the rule of Llama 3.1: divides long wavelengths' frequencies by the factor, keeps short ones', blends others.
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

float inverse_frequency(double theta, int64_t pair, int64_t turned, float factor = 1) {
  const float exponent = static_cast<float>(2 * pair) / static_cast<float>(turned);
  return 1.0F / (factor * std::pow(static_cast<float>(theta), exponent));
}

// Returns the channel, as a fraction, that turns `turns` times over `original` positions.
double yarn_channel(double turns, double turned, double theta, double original) {
  return turned * std::log(original / (turns * 2 * std::numbers::pi)) / (2 * std::log(theta));
}

// Applies YaRN: keeps frequencies of fast channels, divides those of slow ones by the factor, and blends those between.
std::vector<float> yarn_frequencies(const shape::ModelShape& shape, int64_t turned) {
  const nlohmann::json& scaling = shape.rope_scaling;
  const auto original = scaling.at("original_max_position_embeddings").get<double>();
  const auto edge = [&](const char* key) {
    return yarn_channel(scaling.at(key).get<double>(), static_cast<double>(turned), shape.rope_theta, original);
  };
  double low = edge("beta_fast"), high = edge("beta_slow");
  if (scaling.at("truncate").get<bool>()) low = std::floor(low), high = std::ceil(high);
  low = std::max(low, 0.0), high = std::min(high, static_cast<double>(turned - 1));
  if (low == high) high += 0.001;
  std::vector<float> inverse;
  for (int64_t pair = 0; pair < turned / 2; ++pair) {
    const float kept = inverse_frequency(shape.rope_theta, pair, turned);
    const float divided = inverse_frequency(shape.rope_theta, pair, turned, scaling.at("factor").get<float>());
    const double slow = std::clamp((static_cast<double>(pair) - low) / (high - low), 0.0, 1.0);
    const float fast = 1 - static_cast<float>(slow);
    inverse.push_back(divided * (1 - fast) + kept * fast);
  }
  return inverse;
}

bool has_long_factors(const shape::ModelShape& shape) { return shape.rope_scaling.contains("long_factor"); }
int64_t original_positions(const shape::ModelShape& shape) {
  return shape.rope_scaling.at("original_max_position_embeddings").get<int64_t>();
}

std::vector<float> longrope_frequencies(const shape::ModelShape& shape, int64_t turned, int64_t positions) {
  const char* key = positions > original_positions(shape) ? "long_factor" : "short_factor";
  std::vector<float> inverse;
  for (const nlohmann::json& factor : shape.rope_scaling.at(key))
    inverse.push_back(inverse_frequency(shape.rope_theta, std::ssize(inverse), turned, factor.get<float>()));
  return inverse;
}

bool is_dynamic(const shape::ModelShape& shape) {
  return !shape.rope_scaling.is_null() && shape.rope_scaling.at("rope_type") == "dynamic";
}

// Returns the rope base for sequences of at most `positions` positions.
double stretched_base(const shape::ModelShape& shape, int64_t turned, int64_t positions) {
  if (positions <= shape.max_positions) return shape.rope_theta;
  const auto factor = shape.rope_scaling.at("factor").get<double>(), channels = static_cast<double>(turned);
  const double longer = static_cast<double>(positions) / static_cast<double>(shape.max_positions);
  return shape.rope_theta * std::pow(factor * longer - (factor - 1), channels / (channels - 2));
}

}  // namespace

int64_t longest_positions(const shape::ModelShape& shape, int64_t longest) {
  if (is_dynamic(shape) && longest > 0) return std::clamp(longest, shape.max_positions, shape.positions());
  const bool is_short = has_long_factors(shape) && longest > 0 && longest <= original_positions(shape);
  return is_short ? std::min(shape.max_positions, original_positions(shape)) : shape.positions();
}

std::vector<float> rope_inverse_frequencies(const shape::ModelShape& shape, int64_t longest) {
  const std::string type =
      shape.rope_scaling.is_null() ? "default" : shape.rope_scaling.at("rope_type").get<std::string>();
  const int64_t turned = shape.turned();
  if (type == "yarn") return yarn_frequencies(shape, turned);
  if (type == "longrope") return longrope_frequencies(shape, turned, longest_positions(shape, longest));
  const double theta =
      is_dynamic(shape) ? stretched_base(shape, turned, longest_positions(shape, longest)) : shape.rope_theta;
  std::vector<float> inverse;
  for (int64_t pair = 0; pair < turned / 2; ++pair) {
    float value = inverse_frequency(theta, pair, turned);
    if (type == "linear") value /= shape.rope_scaling.at("factor").get<float>();
    if (type == "llama3") value = scale_llama3(value, shape.rope_scaling);
    inverse.push_back(value);
  }
  return inverse;
}

float rope_magnitude(const shape::ModelShape& shape) {
  return shape.rope_scaling.is_null() ? 1 : shape.rope_scaling.value("attention_factor", 1.0F);
}

std::vector<float> own_inverse_frequencies(const shape::ModelShape& shape) {
  std::vector<float> inverse;
  for (const shape::Block& block : shape.blocks) {
    if (block.attention.rope_theta == 0) continue;
    for (int64_t pair = 0; pair < block.attention.turned() / 2; ++pair)
      inverse.push_back(inverse_frequency(block.attention.rope_theta, pair, block.attention.turned()));
    break;
  }
  return inverse;
}

RopeCache::RopeCache(std::vector<float> inverse_frequencies, const tensor::Exec& exec, float magnitude)
    : exec_(exec), inverse_frequencies_(std::move(inverse_frequencies)), magnitude_(magnitude) {}

const tensor::RopeTable& RopeCache::cover(int64_t count) {
  if (count <= table_.positions) return table_;
  const int64_t positions = std::max(count, std::max<int64_t>(256, 2 * table_.positions));
  const auto half = static_cast<int64_t>(inverse_frequencies_.size());
  auto next = std::make_unique<Grown>();
  if (!grown_.empty()) next->cos = grown_.back()->cos, next->sin = grown_.back()->sin;
  for (int64_t position = table_.positions; position < positions; ++position) {
    for (const float inverse : inverse_frequencies_) {
      const float angle = static_cast<float>(position) * inverse;
      next->cos.push_back(static_cast<float>(std::cos(static_cast<double>(angle))) * magnitude_);
      next->sin.push_back(static_cast<float>(std::sin(static_cast<double>(angle))) * magnitude_);
    }
  }
  next->device_cos = {exec_, next->cos};
  next->device_sin = {exec_, next->sin};
  table_ = {next->device_cos.data(), next->device_sin.data(), positions, static_cast<int>(2 * half)};
  grown_.push_back(std::move(next));
  return table_;
}

}  // namespace collimate::model
