#pragma once

#include <cstdint>
#include <vector>

#include "collimate/batch/batch.h"

namespace collimate::rlhf {

// One sample as generation left it: the prompt's tokens and the tokens drawn after them.
struct Completion {
  int64_t uid = 0;
  std::vector<int32_t> prompt;
  std::vector<int32_t> tokens;
  std::vector<float> log_probs;              // [tokens]
  std::vector<int64_t> versions;             // [tokens] version of the weights that drew each token
  std::vector<int16_t> routed_experts = {};  // of prompt and completion as in generate::Emission, or empty
  int32_t finish = 0;                        // generate::Finish
  std::vector<uint8_t> trainable = {};       // [prompt + tokens]; empty: the completion alone is trained
};

// Returns rows with uid, ids (prompt + completion), trainable (1 on the completion unless the sample says otherwise),
// log_probs, weights_version, finish and prompt_tokens; per-token columns are 0 on the prompt. With `routed` > 0, the
// number of experts per token, the rows also have routed_experts, which is -1 for tokens that were not run.
Batch completion_rows(const std::vector<Completion>& completions, int64_t routed = 0);

// Returns the sample of such a row again, without routed_experts and marks of its own.
Completion begun_sample(const Batch& rows, int64_t row);

}  // namespace collimate::rlhf
