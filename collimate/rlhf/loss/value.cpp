#include "collimate/rlhf/loss/value.h"

#include <ATen/TensorOperators.h>

namespace collimate::rlhf {
namespace {

at::Tensor value_error(LossContext& c, double clip) {
  const at::Tensor old = c.per_token(batch::kValues);
  const at::Tensor returns = c.per_token(batch::kReturns);
  const at::Tensor error = (c.values() - returns).square();
  if (clip <= 0) return error;
  const at::Tensor bounded = c.values().maximum(old - clip).minimum(old + clip);
  const at::Tensor bounded_error = (bounded - returns).square();
  c.token_mean("critic/vf_clipfrac", (bounded_error > error).to(at::kFloat));
  return error.maximum(bounded_error);
}

Loss make(const std::string&, const LossSetting& setting) {
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

LossEntry value_losses() {
  return {"values", {"value"}, [](const std::string&) { return std::vector<std::string>{"value_clip"}; }, make};
}

}  // namespace collimate::rlhf
