#pragma once

#include <map>
#include <string>
#include <utility>

#include "collimate/rlhf/types/loss.h"
#include "collimate/train/learner.h"

namespace collimate::rlhf {

// By name: Σ numerator and Σ denominator over micro-batches, as LossContext::metric adds them.
using LossMetrics = std::map<std::string, std::pair<double, double>>;

// Returns the loss as an objective for a learner, which adds the loss's metrics to `metrics` unless that is null. Both
// must outlive the objective.
train::Objective objective_of(const Loss& loss, LossMetrics* metrics = nullptr);

}  // namespace collimate::rlhf
