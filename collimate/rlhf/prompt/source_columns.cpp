// This file has the columns of RowSource that only some kinds of rows have, and the message of one without rows.
#include <algorithm>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/rlhf/prompt/source.h"
#include "collimate/rlhf/types/baseline_sample.h"
#include "collimate/rlhf/types/loss.h"

namespace collimate::rlhf {

void RowSource::add_margins(Batch& rows, const std::vector<Pick>& picks) const {
  std::vector<float> margins;
  for (const Pick& pick : picks)
    margins.insert(margins.end(), static_cast<size_t>(rows_per_example()),
                   margins_.empty() ? 0.F : base::at(margins_, example_of(pick)));
  rows.set(kMargin, margins);
}

// A row that was cut has the marks of those of its steps that it still ends.
void RowSource::add_steps(Batch& rows, const std::vector<Pick>& picks) const {
  std::vector<std::vector<float>> marks;
  for (const Pick& pick : picks) {
    const text::RenderedExample rendered = rendered_.at(example_of(pick));
    size_t step = 0;
    marks.emplace_back();
    for (const uint8_t ends : rendered.rows[0].trainable)
      marks.back().push_back(ends != 0 && rendered.right[step++] != 0 ? 1.F : 0.F);
  }
  rows.set_ragged(kStepRight, marks);
}

void RowSource::add_mismatched(Batch& rows, const std::vector<Pick>& picks, const Pick& before) const {
  const int64_t limit = options_.max_tokens > 0 && options_.model_tokens > 0
                            ? std::min(options_.max_tokens, options_.model_tokens)
                            : std::max(options_.max_tokens, options_.model_tokens);
  std::vector<std::vector<int32_t>> ids;
  std::vector<std::vector<uint8_t>> trainable;
  for (size_t i = 0; i < picks.size(); ++i) {
    const text::RenderedTokens own = rendered(example_of(picks[i]))[0];
    const text::RenderedTokens other = rendered(example_of(i > 0 ? picks[i - 1] : before))[0];
    ids.emplace_back(own.ids.begin(), own.ids.begin() + own.prompt_tokens);
    trainable.emplace_back(ids.back().size(), 0);
    ids.back().insert(ids.back().end(), other.ids.begin() + other.prompt_tokens, other.ids.end());
    trainable.back().insert(trainable.back().end(), other.trainable.begin() + other.prompt_tokens,
                            other.trainable.end());
    if (limit > 0 && static_cast<int64_t>(ids.back().size()) > limit) {
      ids.back().resize(static_cast<size_t>(limit));
      trainable.back().resize(static_cast<size_t>(limit));
    }
  }
  rows.set_ragged(kMismatchedIds, ids);
  rows.set_ragged(kMismatchedTrainable, trainable);
}

void RowSource::add_sampling(Batch& rows) const {
  std::vector<nlohmann::json> sampling(static_cast<size_t>(rows.rows()), options_.sampling);
  std::vector<int32_t> baseline(sampling.size(), 0);
  const auto samples = static_cast<size_t>(rows_per_example());
  for (size_t r = samples - 1; !options_.last_sampling.is_null() && r < sampling.size(); r += samples) {
    sampling[r] = options_.last_sampling;
    baseline[r] = 1;
  }
  if (!options_.last_sampling.is_null()) rows.set(kBaselineSample, baseline);
  rows.set_json(batch::kSampling, std::move(sampling));
}

std::string RowSource::nothing_left() const {
  const std::string key = options_.data.empty() ? "data." + options_.name : options_.data;
  const std::string expected = options_.data.empty() ? "an epoch of at least one example" : "at least one row to use";
  if (rendered_.size() > 0)
    return base::expectation(key, expected, fmt::format("none of {}: their weights are too small", examples()),
                             "a larger weight");
  const text::LeftOut& most = bad_.rows > too_long_.rows ? bad_ : too_long_;
  return base::expectation(key, expected, fmt::format("none: all {} were left out", bad_.rows + too_long_.rows),
                           "a look at the first: " + most.first);
}

}  // namespace collimate::rlhf
