#pragma once

#include <map>
#include <string>
#include <utility>

#include "collimate/rlhf/types/loss.h"
#include "collimate/train/learner.h"

namespace collimate::rlhf {

// Sums over micro-batches, as of LossContext::metric.
using LossMetrics = std::map<std::string, std::pair<double, double>>;

// The loss as a learner asks for it. `loss`, and `metrics`, which may be null, must outlive it.
train::Objective objective_of(const Loss& loss, LossMetrics* metrics = nullptr);

}  // namespace collimate::rlhf
