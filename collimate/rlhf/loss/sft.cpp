#include <ATen/TensorOperators.h>

#include "collimate/rlhf/loss/list.h"

namespace collimate::rlhf {
namespace {

Loss make_sft(const std::string& type, const LossSetting&) {
  const bool weighted = type == "dft";
  return {.name = "sft." + type, .value = [weighted](LossContext& c) {
            c.token_mean("sft/nll", -c.log_probs());
            const at::Tensor tokens = weighted ? c.log_probs().detach().exp() * c.log_probs() : c.log_probs();
            return tokens.sum() / -c.global_tokens();
          }};
}

}  // namespace

// Next-token losses are sums over the trainable tokens divided by the global tokens, with the names of TRL's
// SFTTrainer. nll sums -log p, dft -p · log p with p held constant (Wu et al. 2025).
LossEntry sft_losses() {
  return {"completions",
          {"nll", "dft"},
          {},
          make_sft,
          {{"nll", "The negative log-likelihood of the trained tokens, which is what SFT usually means."},
           {"dft",
            "Dynamic fine-tuning: each token's negative log-likelihood counts by the token's own probability, so "
            "that unlikely tokens pull less."}}};
}

}  // namespace collimate::rlhf
