#include "collimate/generate/sampler.h"

#include <algorithm>
#include <limits>

#include "collimate/base/philox.h"
#include "collimate/tensor/ops/sample.h"

namespace collimate::generate {
namespace {

uint32_t draw_purpose() {
  static const auto purpose = static_cast<uint32_t>(base::stable_hash("generate.draw"));
  return purpose;
}

tensor::SampleOptions truncation(const SamplingParams& params) {
  constexpr int64_t kMostTopK = std::numeric_limits<int32_t>::max();
  return {.temperature = static_cast<float>(params.temperature),
          .top_k = static_cast<int32_t>(std::min(params.top_k, kMostTopK)),
          .top_p = static_cast<float>(params.top_p),
          .min_p = static_cast<float>(params.min_p)};
}

bool contains(std::span<const int32_t> ids, int32_t token) {
  return std::find(ids.begin(), ids.end(), token) != ids.end();
}

}  // namespace

Drawn draw_token(std::span<const float> logits, const SamplingParams& params, const DrawKey& key) {
  const uint64_t seed = params.seed == 0 ? key.run_seed : base::mix(key.run_seed, params.seed);
  const float u =
      base::uniform(seed, draw_purpose(), static_cast<uint64_t>(key.uid), static_cast<uint32_t>(key.position));
  const auto sampled = tensor::sample_row(logits.data(), static_cast<int64_t>(logits.size()), truncation(params), u);
  return {sampled.token, sampled.log_prob};
}

Finish finish_after(int32_t token, int64_t completion_tokens, int64_t length, int64_t max_length,
                    const SamplingParams& params, std::span<const int32_t> eos_ids) {
  if (!params.ignore_eos && contains(eos_ids, token)) return Finish::kEos;
  if (contains(params.stop_ids, token)) return Finish::kStop;
  if (completion_tokens >= params.max_tokens || length >= max_length) return Finish::kLength;
  return Finish::kRunning;
}

}  // namespace collimate::generate
