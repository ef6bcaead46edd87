#include "collimate/generate/sampler.h"

#include <algorithm>
#include <limits>
#include <utility>
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

// Returns a copy of the allowed tokens' bits, as the constraint's next answer overwrites them. Returns nothing if the
// model has none of these tokens: the guess of a draft with a smaller vocabulary may then be any token.
std::vector<uint32_t> allowed_of(const LogitHistory& history, int64_t vocabulary) {
  const std::span<const uint32_t> allowed = history.allowed();
  for (size_t word = 0; word < allowed.size() && static_cast<int64_t>(word) * 32 < vocabulary; ++word) {
    const int64_t bits = std::min<int64_t>(32, vocabulary - static_cast<int64_t>(word) * 32);
    if ((allowed[word] & (~uint64_t{0} >> (64 - bits))) != 0) return {allowed.begin(), allowed.end()};
  }
  return {};
}

}  // namespace

void DrawBatch::add(const float* logits, const SamplingParams& params, const LogitHistory& history,
                    const DrawKey& key) {
  const uint64_t seed = params.seed == 0 ? key.run_seed : base::mix(key.run_seed, params.seed);
  const float u =
      base::uniform(seed, draw_purpose(), static_cast<uint64_t>(key.uid), static_cast<uint32_t>(key.position));
  const auto top_count = static_cast<size_t>(std::min(params.top_log_probs, vocabulary_));
  asked_.push_back(
      {logits, truncation(params), u, logit_edits(params, history), allowed_of(history, vocabulary_), top_count});
}

std::span<Drawn> DrawBatch::run(const tensor::Exec& exec) {
  const std::vector<Asked> all = std::exchange(asked_, {});  // the batch is empty also if a draw fails
  sampled_.resize(all.size());
  drawn_.assign(all.size(), {});
  draws_.clear();
  for (size_t i = 0; i < all.size(); ++i) {
    drawn_[i].top.resize(all[i].top_count);
    if (scores_top_) drawn_[i].scores.resize(all[i].top_count);
    draws_.push_back({all[i].logits, all[i].options, all[i].u, all[i].edits, &sampled_[i], drawn_[i].top,
                      all[i].allowed, drawn_[i].scores});
  }
  tensor::draw_rows(exec, vocabulary_, draws_);
  for (size_t i = 0; i < all.size(); ++i) {
    drawn_[i].token = sampled_[i].token;
    drawn_[i].log_prob = sampled_[i].log_prob;
  }
  return drawn_;
}

}  // namespace collimate::generate
