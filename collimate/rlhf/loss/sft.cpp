#include "collimate/rlhf/loss/sft.h"

#include <ATen/TensorOperators.h>

namespace collimate::rlhf {

Loss sft_loss() {
  return {.name = "sft", .value = [](LossContext& c) {
            c.token_mean("sft/nll", -c.log_probs());
            return c.log_probs().sum() / -c.global_tokens();
          }};
}

}  // namespace collimate::rlhf
