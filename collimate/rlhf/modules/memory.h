#pragma once

#include <vector>

#include "collimate/flow/context.h"
#include "collimate/generate/service.h"
#include "collimate/rlhf/modules/decoder.h"
#include "collimate/tensor/allocator.h"

namespace collimate::rlhf {

// A module of a decoder takes this, by shape, config and the functions that the run's graphs call alone:
//   <weights>/master, /gradient, /optimizer, /panels   of trained weights; /values, /panels of frozen ones, and with
//                                                      adapters of the model's own
//   <base>/values, /panels                             of what it shares with other models of the worker
//   <weights>/workspace, /activations                  arenas of the largest micro-batch that the limits allow
//   kv_cache                                           where `service` is given, or it answers: all its blocks
//   routed_experts                                     beside the cache, where samples record what routers chose
//   tensors, scratch                                   rows and ATen's temporaries; working memory of kernels
// Lengths are taken as the config's limits (rollout.prompt_tokens + completion_tokens, or data.max_tokens), so a run of
// shorter rows takes less.
std::vector<tensor::MemoryItem> decoder_memory(const flow::Context& context, const DecoderOptions& options,
                                               const generate::ServiceOptions* service = nullptr);

}  // namespace collimate::rlhf
