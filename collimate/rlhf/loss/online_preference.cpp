#include <ATen/TensorOperators.h>
#include <ATen/ops/log_sigmoid.h>
#include <ATen/ops/zeros_like.h>

#include <limits>

#include "collimate/base/at.h"
#include "collimate/rlhf/loss/list.h"
#include "collimate/tensor/results.h"

namespace collimate::rlhf {
namespace {

using at::Tensor;

enum RowList { kRatioList, kRewardList, kPromptLowList, kPromptHighList, kRowLists };

// Numbers of the rows of an update, [N] each, or of a micro-batch, [R] each.
struct RankedRows {
  Tensor ratio, reward, prompt_low, prompt_high;
};

struct OnlinePreference {
  bool squared;  // IPO
  double beta;
  bool averaged;

  // Returns [R]: the log-ratio against the reference, summed over the answer's tokens or averaged over them.
  Tensor ratios(const LossContext& c) const {
    const Tensor sum = c.row_sum(c.log_probs()) - c.row_sum(c.per_token(batch::kReferenceLogProbs));
    return averaged ? sum / c.row_tokens().clamp_min(1.0) : sum;
  }

  Tensor of_margin(const Tensor& margin) const {
    return squared ? (margin - 1 / (2 * beta)).square() : -at::log_sigmoid(margin * beta);
  }
};

// Reads the rows of a micro-batch. A row without a trainable token, or whose reward is NaN, gets a reward of NaN and is
// in no pair. Two numbers, which fp32 holds exactly, have 48 bits of the prompt's uid, by which prompts are told apart.
RankedRows rows_of(const LossContext& c, const Tensor& ratio) {
  std::vector<float> reward, low, high;
  for (int64_t r = 0; r < c.rows().rows(); ++r) {
    const bool empty = base::at(c.token_counts(), r) == 0;
    reward.push_back(empty ? std::numeric_limits<float>::quiet_NaN() : c.rows().get(batch::kReward, r));
    const auto uid = static_cast<uint64_t>(c.rows().get(batch::kPromptUid, r));
    low.push_back(static_cast<float>(uid & 0xffffff));
    high.push_back(static_cast<float>((uid >> 24) & 0xffffff));
  }
  const auto beside = [&](const std::vector<float>& values) {
    return tensor::tensor_beside(ratio, std::span<const float>(values));
  };
  return {ratio, beside(reward), beside(low), beside(high)};
}

RankedRows all_rows(const LossContext& c) {
  return {c.surveyed(kRatioList).all, c.surveyed(kRewardList).all, c.surveyed(kPromptLowList).all,
          c.surveyed(kPromptHighList).all};
}

// Returns [R, N]: whether two rows are of one prompt and both may be in a pair.
Tensor same_prompt(const RankedRows& own, const RankedRows& all) {
  return (own.prompt_low.unsqueeze(1) == all.prompt_low)
      .logical_and(own.prompt_high.unsqueeze(1) == all.prompt_high)
      .logical_and(own.reward.unsqueeze(1) == own.reward.unsqueeze(1))
      .logical_and(all.reward == all.reward);
}

// Returns [R, N]: 1 where the own row's reward is the larger one of a pair, else 0.
Tensor wins(const RankedRows& own, const RankedRows& all) {
  return same_prompt(own, all).logical_and(own.reward.unsqueeze(1) > all.reward).to(at::kFloat);
}

// Returns [R]: the weight of one pair of each own row's prompt in the mean over a prompt's pairs, then over the prompts
// that have pairs.
Tensor pair_weights(const RankedRows& own, const RankedRows& all) {
  const Tensor of_rows = wins(all, all).sum(1), together = same_prompt(all, all).to(at::kFloat);  // [N], [N, N]
  const Tensor pairs = together.matmul(of_rows);
  const Tensor prompts = ((pairs > 0).to(at::kFloat) / together.sum(1).clamp_min(1.0)).sum();
  const Tensor own_pairs = same_prompt(own, all).to(at::kFloat).matmul(of_rows);
  return (own_pairs > 0).to(at::kFloat) / (own_pairs.clamp_min(1.0) * prompts.clamp_min(1.0));
}

// Returns the loss of this micro-batch. A pair counts at each of its two rows, which may be in different micro-batches:
// each time with the gradient to that row and half of the pair's value.
Tensor online_value(LossContext& c, const OnlinePreference& loss) {
  const Tensor ratio = loss.ratios(c);
  const RankedRows own = rows_of(c, ratio), all = all_rows(c);
  const Tensor won = wins(own, all), lost = wins(all, own).t();
  const Tensor margin = ratio.unsqueeze(1) - all.ratio;
  const Tensor weight = pair_weights(own, all).unsqueeze(1);
  const Tensor none = at::zeros_like(margin);
  const Tensor terms = loss.of_margin(margin).where(won > 0, none) + loss.of_margin(-margin).where(lost > 0, none);
  const double pairs = won.sum().item<double>();
  if (pairs > 0) {
    c.metric("rewards/accuracies", (won * (margin.detach() > 0).to(at::kFloat)).sum(), pairs);
    c.metric("rewards/margins", (margin.detach().where(won > 0, none)).sum() * loss.beta, pairs);
  }
  const Tensor total = (terms * weight).sum();
  return total - total.detach() * 0.5;
}

Loss make_online(const std::string& type, const LossSetting& setting) {
  const AlgorithmOptions& o = setting.options;
  const OnlinePreference preference{type == "online_ipo", o.beta->value_or(kPairBeta), o.online_dpo_average};
  Loss loss{.name = type, .columns = {batch::kReferenceLogProbs.name, batch::kReward.name, batch::kPromptUid.name}};
  loss.value = [preference](LossContext& c) { return online_value(c, preference); };
  loss.surveys = kRowLists;
  loss.survey = [preference](LossContext& c) {
    const RankedRows rows = rows_of(c, preference.ratios(c).detach());
    return std::vector<Tensor>{rows.ratio, rows.reward, rows.prompt_low, rows.prompt_high};
  };
  return loss;
}

}  // namespace

// Online DPO (Guo et al. 2024) and IPO (Azar et al. 2023) over all pairs of a prompt's samples, as ChatLearn has them.
// The sample with the larger reward is the chosen one; samples with equal rewards, and samples whose reward is NaN,
// make no pair. D is the difference of the two log-ratios against the reference, which are sums over tokens or, by
// online_dpo_average (ChatLearn), means. A pair's loss is -log σ(beta D), or (D - 1 / (2 beta))² for IPO. The loss is
// the mean over a prompt's pairs, then over the prompts of the update that have one. It reads rewards, not advantages.
LossEntry online_preference_losses() {
  return {"rollouts",
          {"online_dpo", "online_ipo"},
          {"beta", "online_dpo_average"},
          make_online,
          {{"online_dpo",
            "DPO's loss on all pairs of a prompt's samples, of which the one with the larger reward is "
            "the chosen one."},
           {"online_ipo", "The same pairs with IPO's squared loss."}}};
}

}  // namespace collimate::rlhf
