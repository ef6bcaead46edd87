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
  std::vector<float> log_probs;   // [tokens]
  std::vector<int64_t> versions;  // [tokens] weights version that drew each
  int32_t finish = 0;             // generate::Finish
};

// Rows with uid, ids (prompt + completion), trainable (1 on the completion), log_probs, weights_version, finish and
// prompt_tokens; per-token columns are 0 on the prompt.
Batch completion_rows(const std::vector<Completion>& completions);

}  // namespace collimate::rlhf
