#pragma once

#include <span>
#include <vector>

#include "collimate/rlhf/advantage/list.h"
#include "collimate/rlhf/advantage/token_rewards.h"

namespace collimate::rlhf {

// "gae" takes this `kl_coefficient` when the config sets none.
inline constexpr double kGaeKlCoefficient = 0.05;

// Returns the rows with the columns that "gae" adds: advantages and returns. A row's reward counts at its last
// trainable token.
Batch gae_advantages(const Batch& rows, const AlgorithmOptions& options);

// One row's results of GAE, each [trainable tokens], in order.
struct GaeRow {
  std::vector<float> advantages;
  std::vector<float> returns;  // advantage + value
};
// Returns the GAE of one row from its rewards and values, each [trainable tokens] in order.
GaeRow gae(std::span<const float> rewards, std::span<const float> values, double gamma, double lambda);

}  // namespace collimate::rlhf
