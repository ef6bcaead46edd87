#pragma once

#include <vector>

#include "collimate/flow/context.h"
#include "collimate/generate/service.h"
#include "collimate/rlhf/modules/decoder.h"
#include "collimate/tensor/allocator.h"

namespace collimate::rlhf {

// Returns the memory in bytes that a module of a decoder takes. It follows from the shape, the config and the functions
// that the run's graphs call:
//   <weights>/master, /gradient, /optimizer, /panels   of trained weights; /values, /panels of frozen ones, which with
//                                                      adapters are the model's own weights
//   <weights>/factors                                  of rows, of adapters with DoRA
//   <base>/values, /panels                             of weights that the worker's models share
//   <weights>/workspace, /activations                  arenas of the largest micro-batch that the limits allow
//   kv_cache                                           all its blocks, if `service` is given or the module answers
//   routed_experts                                     beside the cache, if samples record the routers' choices
//   tensors, scratch                                   rows and ATen's temporaries; working memory of kernels
// Rows are taken to be as long as the config allows (rollout.prompt_tokens + completion_tokens, or data.max_tokens), so
// a run of shorter rows takes less.
std::vector<tensor::MemoryItem> decoder_memory(const flow::Context& context, const DecoderOptions& options,
                                               const generate::ServiceOptions* service = nullptr);

}  // namespace collimate::rlhf
