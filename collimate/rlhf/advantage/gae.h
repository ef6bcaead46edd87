#pragma once

#include <span>
#include <vector>

#include "collimate/rlhf/advantage/list.h"
#include "collimate/rlhf/advantage/token_rewards.h"

namespace collimate::rlhf {

// `kl_coefficient` of "gae" where the config leaves it out.
inline constexpr double kGaeKlCoefficient = 0.05;

// Returns what "gae" adds to rows: advantages and returns. A row's reward is on its last trainable place.
Batch gae_advantages(const Batch& rows, const AlgorithmOptions& options);

// One row's rewards, values -> advantages and returns (advantage + value), all over its trainable tokens in order.
struct GaeRow {
  std::vector<float> advantages;
  std::vector<float> returns;
};
GaeRow gae(std::span<const float> rewards, std::span<const float> values, double gamma, double lambda);

}  // namespace collimate::rlhf
