#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collimate/generate/sampler_stages.h"
#include "collimate/generate/sampling.h"

namespace collimate::generate {

// One token drawn, and its log-softmax(logits / temperature) before stages and truncation.
struct Drawn {
  int32_t token = 0;
  float log_prob = 0.0F;
  std::vector<TokenLogProb> top;  // where asked for: the most likely tokens of the same distribution, in order
};

// The draw for one position of one sample: which Philox uniform it reads.
struct DrawKey {
  uint64_t run_seed = 0;
  int64_t uid = 0;
  int64_t position = 0;  // of the drawn token in its sequence
};

// Draws from one row of logits [V]: the stages change a copy, where any is active, then temperature and truncation
// (tensor/ops/sample.h), then the inverse CDF. Depends on its arguments alone. Thread-safe.
Drawn draw_token(std::span<const float> logits, const SamplingParams& params, const LogitHistory& history,
                 const DrawKey& key);

}  // namespace collimate::generate
