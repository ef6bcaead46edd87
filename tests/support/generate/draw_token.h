#pragma once

#include <span>

#include "collimate/generate/sampler.h"

namespace collimate::generate {

// Makes for tests one draw from a row of logits in the host's memory.
inline Drawn draw_token(std::span<const float> logits, const SamplingParams& params, const LogitHistory& history,
                        const DrawKey& key) {
  DrawBatch batch(static_cast<int64_t>(logits.size()));
  batch.add(logits.data(), params, history, key);
  return batch.run({nullptr, &tensor::cpu_device()}).front();
}

}  // namespace collimate::generate
