#pragma once

#include <cstdint>

#include "collimate/generate/service.h"
#include "collimate/rlhf/modules/options.h"

namespace collimate::rlhf {

// How rollouts are generated, but for the cache.
generate::ServiceOptions service_options(const RolloutOptions& rollout);
// Gives the options with a cache for the samples that an iteration has, though evaluation may bring more: those wait.
// No sequence is longer than the model's positions.
generate::ServiceOptions with_cache(generate::ServiceOptions service, int64_t samples, const shape::ModelShape& shape,
                                    tensor::ComputeType compute);

}  // namespace collimate::rlhf
