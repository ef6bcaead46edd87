#include "collimate/rlhf/loss/value.h"

#include <ATen/TensorOperators.h>

namespace collimate::rlhf {

Loss value_loss(const ValueLossOptions& options) {
  return {.name = "value",
          .needs = {.log_probs = false, .values = true},
          .columns = {batch::kValues.name, batch::kReturns.name},
          .value = [options](LossContext& c) {
            const at::Tensor old = c.per_token(batch::kValues);
            const at::Tensor returns = c.per_token(batch::kReturns);
            const at::Tensor error = (c.values() - returns).square();
            at::Tensor worst = error;
            if (options.clip_range > 0) {
              const at::Tensor bounded = c.values().maximum(old - options.clip_range).minimum(old + options.clip_range);
              const at::Tensor bounded_error = (bounded - returns).square();
              worst = error.maximum(bounded_error);
              c.token_mean("critic/vf_clipfrac", (bounded_error > error).to(at::kFloat));
            }
            c.token_mean("critic/vf_loss", worst * 0.5);
            return worst.sum() * (0.5 * options.coefficient / c.global_tokens());
          }};
}

}  // namespace collimate::rlhf
