#include "collimate/rlhf/loss/sft.h"

#include <ATen/TensorOperators.h>

namespace collimate::rlhf {
namespace {

Loss make(const std::string& type, const LossSetting&) {
  const bool weighted = type == "dft";
  return {.name = "sft." + type, .value = [weighted](LossContext& c) {
            c.token_mean("sft/nll", -c.log_probs());
            const at::Tensor tokens = weighted ? c.log_probs().detach().exp() * c.log_probs() : c.log_probs();
            return tokens.sum() / -c.global_tokens();
          }};
}

}  // namespace

LossEntry sft_losses() {
  return {"completions", {"nll", "dft"}, [](const std::string&) { return std::vector<std::string>{}; }, make};
}

}  // namespace collimate::rlhf
