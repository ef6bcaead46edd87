#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "collimate/batch/batch.h"
#include "collimate/generate/service.h"
#include "collimate/model/model.h"
#include "collimate/rlhf/modules/decoder.h"
#include "collimate/rlhf/types/model_answer.h"

namespace collimate::rlhf {

// The service that answers prompts of at most `row_tokens`, with every limit set.
generate::ServiceOptions answer_service(int64_t row_tokens, const shape::ModelShape& shape,
                                        tensor::ComputeType compute);

// The rows with `model_answer`: greedy, at most 64 tokens. Blocking; calls `progress` after each step. Reads uid, ids,
// prompt_tokens and asked. An asked row has a prompt that leaves the model a position. `stop_ids` end an answer.
Batch with_answers(Decoder& decoder, const DecoderOptions& options, std::vector<int32_t> stop_ids, const Batch& rows,
                   const std::function<void()>& progress);

}  // namespace collimate::rlhf
