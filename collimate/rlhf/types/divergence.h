#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "collimate/batch/batch.h"

namespace collimate::rlhf {

// Each row has, [trainable tokens] in nats, how far the model's distribution at a token is from the teacher's.
inline const Key<float> kDivergence{.name = "divergence", .ragged = true};

// Computes the generalised Jensen-Shannon divergence of a student's distributions p from a teacher's q (Agarwal et al.
// 2024, "On-Policy Distillation of Language Models"; beta as in TRL's GKDTrainer). With m = beta q + (1 - beta) p it is
// beta KL(q || m) + (1 - beta) KL(p || m); beta 0 gives the forward KL(q || p), beta 1 the reverse KL(p || q).
struct Divergence {
  double beta = 0.5;

  // Returns [M] nats from the log-probs [M, outcomes] of the student and of the teacher.
  at::Tensor value(const at::Tensor& student, const at::Tensor& teacher) const;
};

// Returns the divergence of a loss of this name: forward_kl, reverse_kl, or jsd, whose beta is `jsd_beta`.
Divergence divergence_of(const std::string& type, double jsd_beta);

// Returns the log-probs [M, K + 1] of all outcomes at M tokens, from those of the K listed tokens [M, K] and that of
// all other tokens together [M].
at::Tensor outcomes(const at::Tensor& listed, const at::Tensor& rest);

}  // namespace collimate::rlhf
