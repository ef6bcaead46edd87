#include "collimate/model/initialize.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "collimate/base/at.h"
#include "collimate/base/philox.h"
#include "collimate/model/weights.h"
#include "collimate/shape/transfer_plan.h"

namespace collimate::model {
namespace {

// Makes two normal numbers from 64 random bits (Box and Muller 1958).
void normal_pair(uint64_t bits, double out[2]) {
  const double first = (static_cast<double>(bits >> 32) + 1) * 0x1p-32;  // (0, 1]
  const double second = static_cast<double>(bits & 0xFFFFFFFFU) * 0x1p-32;
  const double radius = std::sqrt(-2 * std::log(first)), angle = 2 * std::numbers::pi * second;
  out[0] = radius * std::cos(angle);
  out[1] = radius * std::sin(angle);
}

}  // namespace

void initialize_param(const shape::ParamSpec& spec, uint64_t seed, float std, std::span<float> values) {
  const bool weights = spec.kind == shape::ParamKind::kEmbedding || spec.kind == shape::ParamKind::kLinear;
  if (!weights || spec.part == shape::Part::kScore) {
    std::fill(values.begin(), values.end(), spec.kind == shape::ParamKind::kNorm ? 1.0F : 0.0F);
    return;
  }
  static const auto kPurpose = static_cast<uint32_t>(base::stable_hash("initial weights"));
  const uint64_t name = base::stable_hash(spec.name);
  for (size_t i = 0; i < values.size(); i += 2) {
    double pair[2];
    normal_pair(base::random_bits(seed, kPurpose, base::mix(name, i >> 32), static_cast<uint32_t>(i / 2)), pair);
    for (size_t j = 0; j < 2 && i + j < values.size(); ++j) values[i + j] = static_cast<float>(pair[j] * std);
  }
}

uint64_t param_checksum(const std::string& name, std::span<const float> values) {
  return shape::checksum_of(name, std::ssize(values), {0, 1, 0, std::ssize(values)}, values);
}

void Weights::initialize(uint64_t seed, float std) {
  for (size_t i = 0; i < own_params(); ++i)
    fill(static_cast<int>(i), [&](std::span<float> whole) { initialize_param(params()[i], seed, std, whole); });
  commit();
}

}  // namespace collimate::model
