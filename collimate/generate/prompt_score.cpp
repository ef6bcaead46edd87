#include "collimate/generate/prompt_score.h"

#include <algorithm>
#include <numeric>

#include "collimate/base/error.h"
#include "collimate/generate/token_ids.h"
#include "collimate/tensor/results.h"

namespace collimate::generate {
namespace {

void check_prompt(std::span<const int32_t> ids, const shape::ModelShape& shape) {
  const auto length = static_cast<int64_t>(ids.size());
  if (length == 0 || length > shape.positions()) {
    throw base::InputError(base::expectation(
        "generate.score", fmt::format("from 1 to {} tokens to score", shape.positions()), fmt::to_string(length)));
  }
  require_token_ids(ids, shape.vocabulary, "generate.score");
}

}  // namespace

PromptScore::PromptScore(model::Model& model, std::span<const int32_t> ids, double temperature, int64_t top_count)
    : model_(model),
      ids_(ids.begin(), ids.end()),
      temperature_(temperature == 0 ? 1.0F : static_cast<float>(temperature)),
      top_count_(std::min<int64_t>(top_count, model.shape().vocabulary)) {
  check_prompt(ids_, model.shape());
  scored_.log_probs.assign(1, 0.0F);
  scored_.top_log_probs.resize(static_cast<size_t>(top_count_));
  if (to_run() == 0) return;
  constexpr int64_t kBlock = model::KvCache::kBlockTokens;
  cache_ = std::make_unique<model::KvCache>(model.shape(), model::kv_type(model.weights().options().compute),
                                            (to_run() + kBlock - 1) / kBlock, model.exec());
  table_.resize(static_cast<size_t>(cache_->blocks()));
  std::iota(table_.begin(), table_.end(), 0);
}

bool PromptScore::advance(int64_t tokens) {
  COLLIMATE_CHECK(tokens > 0, "{} tokens", tokens);
  const int64_t count = std::min(tokens, to_run() - done_);
  if (count == 0) return true;
  const auto first = ids_.begin() + done_;
  model::TokenBatch batch{.ids = {first, first + count}, .starts = {0, static_cast<int32_t>(count)}};
  batch.positions.resize(static_cast<size_t>(count));
  std::iota(batch.positions.begin(), batch.positions.end(), static_cast<int32_t>(done_));
  const at::Tensor hidden = model_.forward_cached(batch, *cache_, {&table_, 1});
  if (model_.weights().stages().place.is_last())
    keep(model_.log_probs({.hidden = hidden,
                           .targets = {first + 1, first + 1 + count},
                           .temperature = temperature_,
                           .top_count = top_count_}));
  done_ += count;
  return done_ == to_run();
}

void PromptScore::keep(const model::LogProbResult& result) {
  const tensor::HostTensor values(model_.exec(), result.log_probs);
  scored_.log_probs.insert(scored_.log_probs.end(), values.floats().begin(), values.floats().end());
  scored_.top_log_probs.insert(scored_.top_log_probs.end(), result.top.begin(), result.top.end());
}

}  // namespace collimate::generate
