#pragma once

#include <cstdint>

#include "collimate/generate/service.h"
#include "collimate/rlhf/modules/options.h"

namespace collimate::rlhf {

// Returns the options of the service that generates rollouts; with_cache sizes its cache.
generate::ServiceOptions service_options(const RolloutOptions& rollout);
// Returns the options with a cache that has room for `samples` sequences, those of an iteration, 64 at least and
// max_batch_sequences at most; evaluation may bring more, which then wait. No sequence is longer than the model's
// positions.
generate::ServiceOptions with_cache(generate::ServiceOptions service, int64_t samples, const shape::ModelShape& shape,
                                    tensor::ComputeType compute);

}  // namespace collimate::rlhf
