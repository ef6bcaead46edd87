#include <ATen/TensorOperators.h>
#include <ATen/ops/log_sigmoid.h>

#include "collimate/rlhf/loss/list.h"

namespace collimate::rlhf {
namespace {

using at::Tensor;

Tensor step_value(LossContext& c) {
  const Tensor &scores = c.token_scores(), right = c.per_token(kStepRight);
  const Tensor likelihood = right * at::log_sigmoid(scores) + (1 - right) * at::log_sigmoid(-scores);
  c.token_mean("steps/accuracy", ((scores > 0) == (right > 0.5)).to(at::kFloat));
  c.token_mean("steps/right", right);
  return likelihood.sum() / -c.global_tokens();
}

Loss make_step(const std::string& type, const LossSetting&) {
  return {.name = type,
          .needs = {.log_probs = false, .token_scores = true},
          .columns = {kStepRight.name},
          .value = step_value};
}

}  // namespace

// step_logistic trains process reward models (Uesato et al. 2022, Lightman et al. 2023; Wang et al. 2024,
// Math-Shepherd, equation 3): the mean over all labelled steps of -log σ(s) for a right step and -log σ(-s) for a wrong
// one, with s the score at the token that ends the step. TRL's PRMTrainer has the cross entropy of two logits there,
// which is this of their difference.
LossEntry step_losses() {
  return {"labelled steps",
          {"step_logistic"},
          {},
          make_step,
          {{"step_logistic",
            "The logistic loss of each step's score against its label, right or wrong, as process reward models are "
            "trained."}}};
}

}  // namespace collimate::rlhf
