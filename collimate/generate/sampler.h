#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collimate/generate/sampling.h"
#include "collimate/generate/service.h"

namespace collimate::generate {

// One token drawn, and its log-softmax(logits / temperature) before truncation.
struct Drawn {
  int32_t token = 0;
  float log_prob = 0.0F;
};

// The draw for one position of one sample: which Philox uniform it reads.
struct DrawKey {
  uint64_t run_seed = 0;
  int64_t uid = 0;
  int64_t position = 0;  // of the drawn token in its sequence
};

// Draws from one row of logits [V]. Depends on its arguments alone. Thread-safe.
Drawn draw_token(std::span<const float> logits, const SamplingParams& params, const DrawKey& key);

// Why a request ends with `token` as its newest of `completion_tokens`, or kRunning. `length` counts the prompt too.
Finish finish_after(int32_t token, int64_t completion_tokens, int64_t length, int64_t max_length,
                    const SamplingParams& params, std::span<const int32_t> eos_ids);

}  // namespace collimate::generate
