#include "collimate/rlhf/advantage/gae.h"

#include "collimate/batch/standard_keys.h"
#include "collimate/batch/trainable.h"

namespace collimate::rlhf {

GaeRow gae(std::span<const float> rewards, std::span<const float> values, double gamma, double lambda) {
  GaeRow out{std::vector<float>(rewards.size()), std::vector<float>(rewards.size())};
  float last = 0.F;
  for (size_t i = rewards.size(); i-- > 0;) {
    const float next = i + 1 < rewards.size() ? values[i + 1] : 0.F;
    const float delta = rewards[i] + static_cast<float>(gamma) * next - values[i];
    last = delta + static_cast<float>(gamma * lambda) * last;
    out.advantages[i] = last;
    out.returns[i] = last + values[i];
  }
  return out;
}

// "gae" is generalised advantage estimation (Schulman et al. 2016) with the KL against the reference in the reward. The
// reward is at the last trainable token, as in verl, OpenRLHF and DeepSpeed-Chat; TRL's PPOTrainer has it one place
// further, with a value of its own there, if a completion ends before its limit. The entry reads reward, log_probs,
// reference_log_probs and values. Advantages are whitened over the iteration unless whiten_advantages is false, which
// is DeepSpeed-Chat's way.
AdvantageEntry gae_entry() {
  return {.name = "gae",
          .rows = "values",
          .needs = {"uid", "trainable", "log_probs", "reference_log_probs", "values", "reward"},
          .makes = {"advantages", "returns"},
          .options = {"gamma", "lambda", "whiten_rewards", "whiten_advantages", "whiten_variance"},
          .add = gae_advantages,
          .kl_coefficient = kGaeKlCoefficient,
          .charges_kl = true,
          .about =
              "GAE: what the rewards from a token on are above the value model's expectation, with the KL against the "
              "reference taken off."};
}

Batch gae_advantages(const Batch& rows, const AlgorithmOptions& options) {
  const double kl_coefficient = options.kl_coefficient->value_or(kGaeKlCoefficient);
  TokenValues rewards = by_row(rows, [&](int64_t r) { return token_rewards(rows, r, options, kl_coefficient); });
  if (options.whiten_rewards) whiten(rewards, options, false);
  TokenValues advantages, returns;
  for (int64_t r = 0; r < rows.rows(); ++r) {
    GaeRow row = gae(rewards[r], batch::at_trainable(rows, batch::kValues, r), options.gamma, options.lambda);
    advantages.push_back(std::move(row.advantages));
    returns.push_back(std::move(row.returns));
  }
  if (options.whiten_advantages) whiten(advantages, options);
  Batch out = with_token_advantages(rows, std::move(advantages));
  out.set_ragged(batch::kReturns, spread(rows, std::move(returns)));
  return out;
}

}  // namespace collimate::rlhf
