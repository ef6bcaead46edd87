#include <utility>

#include "collimate/rlhf/advantage/list.h"
#include "collimate/rlhf/advantage/token_rewards.h"

namespace collimate::rlhf {
namespace {

Batch add_returns(const Batch& rows, const AlgorithmOptions& options) {
  TokenValues returns = by_row(rows, [&](int64_t r) {
    std::vector<float> row = token_rewards(rows, r, options, options.kl_coefficient->value_or(0));
    for (size_t t = row.size(); t-- > 1;) row[t - 1] += static_cast<float>(options.gamma) * row[t];
    return row;
  });
  whiten(returns, options);
  return with_token_advantages(rows, std::move(returns));
}

}  // namespace

// "reinforce_plus_plus" (Hu 2025, REINFORCE++; as in verl 0.10 and OpenRLHF 0.11) is a token's return, whitened over
// the tokens of the iteration. The return is the sum of the rewards from the token on, discounted by gamma once per
// token. The KL against the reference is subtracted token by token, and the sample's reward is at its last token.
// Samples of a prompt are not compared, so that one is enough.
AdvantageEntry reinforce_entry() {
  return {.name = "reinforce_plus_plus",
          .needs = {"uid", "trainable", "reward"},
          .options = {"gamma", "whiten_variance"},
          .add = add_returns,
          .charges_kl = true,
          .compares_samples = false,
          .about =
              "REINFORCE++: the discounted rewards from a token on, standardised over the iteration; one sample of a "
              "prompt is enough."};
}

}  // namespace collimate::rlhf
