#include "collimate/generate/sampler.h"

#include <algorithm>
#include <limits>
#include <vector>

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

std::vector<TokenLogProb> top_of_row(std::span<const float> logits, const SamplingParams& params) {
  const auto vocab = static_cast<int64_t>(logits.size());
  std::vector<TokenLogProb> top(static_cast<size_t>(std::min(params.top_log_probs, vocab)));
  if (top.empty()) return top;
  tensor::row_top_log_probs(logits.data(), vocab, static_cast<float>(params.temperature),
                            static_cast<int64_t>(top.size()), top.data());
  return top;
}

}  // namespace

Drawn draw_token(std::span<const float> logits, const SamplingParams& params, const LogitHistory& history,
                 const DrawKey& key) {
  const uint64_t seed = params.seed == 0 ? key.run_seed : base::mix(key.run_seed, params.seed);
  const float u =
      base::uniform(seed, draw_purpose(), static_cast<uint64_t>(key.uid), static_cast<uint32_t>(key.position));
  const auto vocab = static_cast<int64_t>(logits.size());
  const tensor::SampleOptions options = truncation(params);
  if (!changes_logits(params, history)) {
    const auto sampled = tensor::sample_row(logits.data(), vocab, options, u);
    return {sampled.token, sampled.log_prob, top_of_row(logits, params)};
  }
  thread_local std::vector<float> changed;  // [V]
  changed.assign(logits.begin(), logits.end());
  apply_logit_stages(params, history, changed);
  const int32_t token = tensor::sample_row(changed.data(), vocab, options, u).token;
  return {token, tensor::row_log_prob(logits.data(), vocab, options.temperature, token), top_of_row(logits, params)};
}

}  // namespace collimate::generate
