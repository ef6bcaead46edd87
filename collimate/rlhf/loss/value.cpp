#include <ATen/TensorOperators.h>

#include <optional>

#include "collimate/rlhf/loss/list.h"

namespace collimate::rlhf {
namespace {

// Returns [M]: the squared error of each token's value or, with `clip`, the larger one of it and the clipped value's.
at::Tensor value_error(LossContext& c, std::optional<double> clip) {
  const at::Tensor old = c.per_token(batch::kValues);
  const at::Tensor returns = c.per_token(batch::kReturns);
  const at::Tensor error = (c.values() - returns).square();
  if (!clip) return error;
  const at::Tensor bounded = c.values().clamp(old - *clip, old + *clip);  // passes the gradient at its bounds
  const at::Tensor bounded_error = (bounded - returns).square();
  c.token_mean("critic/vf_clipfrac", (bounded_error > error).to(at::kFloat));
  return error.maximum(bounded_error);
}

Loss make_value(const std::string&, const LossSetting& setting) {
  return {.name = "value",
          .needs = {.log_probs = false, .values = true},
          .columns = {batch::kValues.name, batch::kReturns.name},
          .value = [clip = setting.options.value_clip.get()](LossContext& c) {
            const at::Tensor worst = value_error(c, clip);
            c.token_mean("critic/vf_loss", worst * 0.5);
            return worst.sum() * (0.5 / c.global_tokens());
          }};
}

}  // namespace

// value is ½ · mean over tokens of max((V - R)², (clip(V, V_old ± value_clip) - R)²), or of (V - R)² if
// value_clip is null. It reads `values` (old) and `returns`. TRL's PPO adds it to the policy's loss with weight 0.1:
// use loss_weights.
LossEntry value_losses() {
  return {"values",
          {"value"},
          {"value_clip"},
          make_value,
          {{"value", "The squared error of the value model, of which value_clip bounds the steps."}}};
}

}  // namespace collimate::rlhf
