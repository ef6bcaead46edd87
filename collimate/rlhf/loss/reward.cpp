#include <ATen/TensorOperators.h>
#include <ATen/ops/log_sigmoid.h>

#include "collimate/rlhf/loss/list.h"
#include "collimate/rlhf/loss/pairs.h"

namespace collimate::rlhf {
namespace {

using at::Tensor;

Tensor bradley_terry(LossContext& c, double center) {
  const Tensor chosen = every_second(c.row_scores(), 0);
  const Tensor rejected = every_second(c.row_scores(), 1);
  Tensor difference = chosen - rejected;
  if (c.rows().has(kMargin.name)) difference = difference - every_second(c.per_row(kMargin), 0);
  Tensor loss = -at::log_sigmoid(difference);
  if (center != 0.0) loss = loss + (chosen + rejected).square() * center;
  report_scores(c);
  return loss.sum() / (c.global_rows() / 2);
}

Loss make_pairwise(const std::string&, const LossSetting& setting) {
  return {.name = "reward",
          .needs = {.log_probs = false, .row_scores = true, .rows_per_unit = 2},
          .columns = {kMargin.name},
          .value = [center = setting.options.center_rewards_coefficient.get()](LossContext& c) {
            return bradley_terry(c, center);
          }};
}

}  // namespace

// bradley_terry, as in TRL's RewardTrainer, is the mean over pairs of -log σ(chosen - rejected - margin) +
// center_rewards_coefficient · (chosen + rejected)², with the score at each row's last token. The margin is the
// chosen row's kMargin, or 0 in a batch without it.
LossEntry reward_losses() {
  return {"scored pairs",
          {"bradley_terry"},
          {"center_rewards_coefficient"},
          make_pairwise,
          {{"bradley_terry",
            "The logistic loss of the chosen answer's score less the rejected one's, as Bradley and "
            "Terry model preferences."}}};
}

}  // namespace collimate::rlhf
