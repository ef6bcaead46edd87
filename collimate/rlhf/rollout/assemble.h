#pragma once

#include <cstdint>
#include <vector>

#include "collimate/batch/batch.h"

namespace collimate::rlhf {

// One sample as generation left it: the prompt's tokens and what was drawn after them.
struct Completion {
  int64_t uid = 0;
  std::vector<int32_t> prompt;
  std::vector<int32_t> tokens;
  std::vector<float> log_probs;              // [tokens]
  std::vector<int64_t> versions;             // [tokens] weights version that drew each
  std::vector<int16_t> routed_experts = {};  // of prompt and completion: as generate::Emission, or empty
  int32_t finish = 0;                        // generate::Finish
  std::vector<uint8_t> trainable = {};       // of prompt and completion, where that is not the completion alone
};

// Rows with uid, ids (prompt + completion), trainable (1 on the completion), log_probs, weights_version, finish and
// prompt_tokens; per-token columns are 0 on the prompt. With `routed` > 0, so many experts a token, also
// routed_experts.
Batch completion_rows(const std::vector<Completion>& completions, int64_t routed = 0);

}  // namespace collimate::rlhf
