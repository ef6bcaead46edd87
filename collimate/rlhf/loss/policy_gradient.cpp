#include <ATen/TensorOperators.h>

#include <limits>

#include "collimate/rlhf/loss/policy_terms.h"

namespace collimate::rlhf {
namespace {

constexpr double kNowhere = std::numeric_limits<double>::infinity();

at::Tensor weighted_likelihood(const PolicyTerms& t, const AlgorithmOptions&) { return -t.log_probs * t.advantages; }

}  // namespace

// gpg (Chu et al. 2025, GPG; as in verl 0.10) is the mean over the update's tokens of -A · log p, without ratio or
// clip. It is REINFORCE with the config's advantages.
LossEntry policy_gradient_losses() {
  return policy_entry({{"gpg",
                        "GPG: the advantage times the log-prob, without ratio or clip (REINFORCE).",
                        {weighted_likelihood,
                         [](const AlgorithmOptions&) {
                           return ClipRange{-kNowhere, kNowhere};
                         },
                         {}},
                        update_token_mean}});
}

}  // namespace collimate::rlhf
