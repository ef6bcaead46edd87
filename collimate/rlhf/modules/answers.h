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

// Returns the options, with every limit set, of the service that answers prompts of at most `row_tokens` tokens.
generate::ServiceOptions answer_service(int64_t row_tokens, const shape::ModelShape& shape,
                                        tensor::ComputeType compute);

// Returns the rows with a column `model_answer`: for each row with `asked`, a greedy answer to its prompt of at most 64
// tokens, which `stop_ids` end. Blocks and calls `progress`, if set, after each step. Reads uid, ids, prompt_tokens and
// asked. The prompt of an asked row must leave the model at least one position. Ranks that share a mixture's experts
// must call it together, also those without rows.
Batch with_answers(Decoder& decoder, const DecoderOptions& options, std::vector<int32_t> stop_ids, const Batch& rows,
                   const std::function<void()>& progress);

}  // namespace collimate::rlhf
