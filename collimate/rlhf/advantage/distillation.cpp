#include "collimate/batch/standard_keys.h"
#include "collimate/batch/trainable.h"
#include "collimate/rlhf/advantage/list.h"
#include "collimate/rlhf/advantage/token_rewards.h"

namespace collimate::rlhf {
namespace {

Batch add_teachers_gain(const Batch& rows, const AlgorithmOptions&) {
  return with_token_advantages(rows, by_row(rows, [&](int64_t r) {
                                 std::vector<float> gain = batch::at_trainable(rows, batch::kReferenceLogProbs, r);
                                 const std::vector<float> own = batch::at_trainable(rows, batch::kLogProbs, r);
                                 for (size_t t = 0; t < gain.size(); ++t) gain[t] -= own[t];
                                 return gain;
                               }));
}

}  // namespace

// "distillation" is on-policy distillation. The reference is a teacher, and a token's advantage is log p_teacher - log
// p as the policy drew the token, which estimates -KL(policy || teacher) at this token alone. By the policy-gradient
// theorem the gradient is that of the reverse KL of each token's distribution on the policy's own samples (Agarwal et
// al. 2024, GKD with all data on-policy and beta 1; Gu et al. 2024, MiniLLM; Lu 2025, "On-Policy Distillation", with
// discount 0). Later tokens count for nothing, and there is no baseline and no whitening, so the advantage is 0 where
// both models agree. The entry reads no rewards, though the run reports them; one sample of a prompt is enough.
AdvantageEntry distillation_entry() {
  return {.name = "distillation",
          .needs = {"uid", "trainable", "log_probs", "reference_log_probs"},
          .add = add_teachers_gain,
          .kl_coefficient = 1,
          .charges_kl = true,
          .compares_samples = false,
          .reads_parts = true,
          .about =
              "On-policy distillation: the log-prob of the reference, which is the teacher, less the policy's own, "
              "token by token."};
}

}  // namespace collimate::rlhf
