#include "collimate/rlhf/modules/service_options.h"

#include <algorithm>

namespace collimate::rlhf {

generate::ServiceOptions service_options(const RolloutOptions& rollout) {
  generate::ServiceOptions service{.max_batch_tokens = rollout.max_batch_tokens,
                                   .max_batch_sequences = rollout.max_batch_sequences,
                                   .max_sequence_tokens = rollout.prompt_tokens + rollout.completion_tokens,
                                   .speculation_tokens = rollout.speculation.tokens()};
  service.cache_blocks = rollout.cache_blocks;
  service.kv_type = rollout.kv_cache_dtype.type();
  return service;
}

generate::ServiceOptions with_cache(generate::ServiceOptions service, int64_t samples, const shape::ModelShape& shape,
                                    tensor::ComputeType compute) {
  constexpr int64_t kFewestSequences = 64;
  service.max_sequence_tokens = std::min<int64_t>(service.max_sequence_tokens, shape.positions());
  generate::ServiceOptions sized = service;
  sized.max_batch_sequences = std::min(service.max_batch_sequences, std::max(kFewestSequences, samples));
  sized = generate::resolved(std::move(sized), shape, compute);
  service.cache_blocks = sized.cache_blocks;
  service.kv_type = sized.kv_type;
  return service;
}

}  // namespace collimate::rlhf
