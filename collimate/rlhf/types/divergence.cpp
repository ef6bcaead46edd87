#include "collimate/rlhf/types/divergence.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/logaddexp.h>

#include <cmath>

namespace collimate::rlhf {
namespace {

// Returns KL(a || b) of each row, from log-probs.
at::Tensor kl(const at::Tensor& a, const at::Tensor& b) { return (a.exp() * (a - b)).sum(-1); }

}  // namespace

at::Tensor Divergence::value(const at::Tensor& student, const at::Tensor& teacher) const {
  if (beta == 0) return kl(teacher, student);
  if (beta == 1) return kl(student, teacher);
  const at::Tensor mixture = at::logaddexp(student + std::log1p(-beta), teacher + std::log(beta));
  return kl(teacher, mixture) * beta + kl(student, mixture) * (1 - beta);
}

Divergence divergence_of(const std::string& type, double jsd_beta) {
  return {type == "forward_kl" ? 0.0 : type == "reverse_kl" ? 1.0 : jsd_beta};
}

at::Tensor outcomes(const at::Tensor& listed, const at::Tensor& rest) {
  return at::cat({listed, rest.unsqueeze(1)}, 1);
}

}  // namespace collimate::rlhf
