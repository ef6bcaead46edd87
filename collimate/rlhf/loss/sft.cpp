#include "collimate/rlhf/loss/sft.h"

#include <ATen/TensorOperators.h>

#include "collimate/base/error.h"

namespace collimate::rlhf {

Loss sft_loss(const SftOptions& options) {
  const bool weighted = options.loss_type == "dft";
  if (!weighted && options.loss_type != "nll")
    throw base::InputError(
        base::expectation("algorithm.loss_type", "one of nll, dft", "\"" + options.loss_type + "\""));
  return {.name = "sft", .value = [weighted](LossContext& c) {
            c.token_mean("sft/nll", -c.log_probs());
            const at::Tensor tokens = weighted ? c.log_probs().detach().exp() * c.log_probs() : c.log_probs();
            return tokens.sum() / -c.global_tokens();
          }};
}

}  // namespace collimate::rlhf
