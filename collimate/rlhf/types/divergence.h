#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "collimate/batch/batch.h"

namespace collimate::rlhf {

// [tokens] of each trainable token of a row, in nats: how far the model's distribution is from the teacher's.
inline const Key<float> kDivergence{.name = "divergence", .ragged = true};

// The generalised Jensen-Shannon divergence of a student's distributions p from a teacher's q (Agarwal et al. 2024,
// "On-Policy Distillation of Language Models"; beta as in TRL's GKDTrainer): with m = beta q + (1 - beta) p it is
// beta KL(q || m) + (1 - beta) KL(p || m); at beta 0 the forward KL(q || p), at 1 the reverse KL(p || q).
struct Divergence {
  double beta = 0.5;

  // Log-probs [M, outcomes] of both -> [M] nats.
  at::Tensor value(const at::Tensor& student, const at::Tensor& teacher) const;
};

// By the name of a loss on such rows: forward_kl, reverse_kl or jsd, which has this beta.
Divergence divergence_of(const std::string& type, double jsd_beta);

// The outcomes [M, K + 1] of M tokens: the K listed ones [M, K], and all others together [M].
at::Tensor outcomes(const at::Tensor& listed, const at::Tensor& rest);

}  // namespace collimate::rlhf
