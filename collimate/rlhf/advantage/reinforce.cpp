#include "collimate/batch/standard_keys.h"
#include "collimate/rlhf/advantage/list.h"
#include "collimate/rlhf/advantage/token_rewards.h"

namespace collimate::rlhf {
namespace {

Batch add_returns(const Batch& rows, const AlgorithmOptions& options) {
  std::vector<std::vector<float>> returns;
  for (int64_t r = 0; r < rows.rows(); ++r) {
    std::vector<float>& row =
        returns.emplace_back(token_rewards(rows, r, options, options.kl_coefficient->value_or(0)));
    for (size_t t = row.size(); t-- > 1;) row[t - 1] += static_cast<float>(options.gamma) * row[t];
  }
  whiten(returns, options);
  for (int64_t r = 0; r < rows.rows(); ++r) returns[r] = spread(rows, r, returns[r]);
  Batch out = rows;
  out.set_ragged(batch::kAdvantages, returns);
  return out;
}

}  // namespace

// "reinforce_plus_plus" (Hu 2025, REINFORCE++; as in verl 0.10 and OpenRLHF 0.11): a token's return, which is the sum
// of the rewards from it on, each discounted by gamma once per token, whitened over the tokens of the iteration. The KL
// against the reference is in the rewards token by token, the sample's reward on its last token. Samples of a prompt
// are not compared, so that one is enough.
AdvantageEntry reinforce_entry() {
  return {.name = "reinforce_plus_plus",
          .rows = "groups",
          .needs = {"uid", "trainable", "reward"},
          .makes = {"advantages"},
          .options = {"gamma", "whiten_variance"},
          .add = add_returns,
          .charges_kl = true,
          .compares_samples = false};
}

}  // namespace collimate::rlhf
