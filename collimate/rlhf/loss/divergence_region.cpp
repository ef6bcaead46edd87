#include <ATen/TensorOperators.h>
#include <ATen/ops/log_sigmoid.h>

#include <algorithm>

#include "collimate/batch/padding.h"
#include "collimate/rlhf/loss/list.h"
#include "collimate/rlhf/loss/pairs.h"
#include "collimate/tensor/results.h"

namespace collimate::rlhf {
namespace {

using at::Tensor;

// Says which of a micro-batch's trainable tokens are compared, the i-th of `chosen` with the i-th of `rejected`, and
// how much each of these comparisons counts in the mean of its pair.
struct TokenComparisons {
  std::vector<int64_t> chosen, rejected;
  std::vector<float> weights;
};

// Returns the comparisons of pairs whose rows have so many trainable tokens. Where padding has not made a pair's rows
// equally long, the last token of the shorter one stands for those behind it. A row without a trainable token is
// compared with nothing.
TokenComparisons comparisons_of(const std::vector<int64_t>& counts) {
  TokenComparisons out;
  int64_t first = 0;
  for (size_t r = 0; r + 1 < counts.size(); r += 2) {
    const int64_t of_chosen = counts[r], of_rejected = counts[r + 1], second = first + of_chosen;
    const int64_t tokens = std::min(of_chosen, of_rejected) > 0 ? std::max(of_chosen, of_rejected) : 0;
    for (int64_t t = 0; t < tokens; ++t) {
      out.chosen.push_back(first + std::min(t, of_chosen - 1));
      out.rejected.push_back(second + std::min(t, of_rejected - 1));
      out.weights.push_back(1.F / static_cast<float>(tokens));
    }
    first = second + of_rejected;
  }
  return out;
}

Tensor region_value(LossContext& c) {
  const TokenComparisons pairs = comparisons_of(c.token_counts());
  const Tensor& scores = c.token_scores();
  const auto at_tokens = [&](const std::vector<int64_t>& tokens) {
    return scores.index_select(0, tensor::tensor_beside(scores, std::span<const int64_t>(tokens)));
  };
  const Tensor loss = -at::log_sigmoid(at_tokens(pairs.chosen) - at_tokens(pairs.rejected));
  report_scores(c);
  const Tensor weights = tensor::tensor_beside(scores, std::span<const float>(pairs.weights));
  return (loss * weights).sum() / (c.global_rows() / 2);
}

Loss make_region(const std::string& type, const LossSetting&) {
  return {.name = type,
          .needs = {.log_probs = false, .row_scores = true, .token_scores = true, .rows_per_unit = 2},
          .columns = {batch::kUnpaddedTokens.name},
          .value = region_value};
}

}  // namespace

// divergence_region, as DeepSpeed-Chat trains its reward models (dschat/utils/model/reward_model.py): with r the score
// at each token, the loss of a pair is the mean of -log σ(r_chosen - r_rejected) over the tokens from the first one in
// which the answers differ to the end of the longer answer, the shorter one's padding among them (these are the
// trainable tokens of both rows, which pad_pairs of rlhf/prompt makes). The loss is the mean over pairs. An answer's
// score is that at its own last token.
LossEntry divergence_region_losses() {
  return {"scored pairs",
          {"divergence_region"},
          {},
          make_region,
          {{"divergence_region",
            "The logistic loss of the answers' scores token by token, from the first token in which they differ to the "
            "end of the longer one, as DeepSpeed-Chat trains reward models."}}};
}

}  // namespace collimate::rlhf
