#include "collimate/rlhf/modules/kl_estimate.h"

#include <algorithm>

#include "collimate/batch/standard_keys.h"
#include "collimate/flow/host_module.h"
#include "collimate/rlhf/types/loss.h"

namespace collimate::rlhf {
namespace {

Batch with_kl_estimate(const Batch& rows, const flow::CallInfo&, std::vector<flow::Metric>& metrics) {
  double sum = 0;
  for (int64_t r = 0; r < rows.rows(); ++r)
    sum += double{rows.get(kMismatchedLogProb, r)} - rows.get(kMismatchedReferenceLogProb, r);
  const double estimate = rows.rows() > 0 ? std::max(0.0, sum / static_cast<double>(rows.rows())) : 0.0;
  metrics.push_back({"actor/kl_estimate", estimate});
  Batch out = rows;
  out.set(kKlEstimate, std::vector<float>(static_cast<size_t>(rows.rows()), static_cast<float>(estimate)));
  return out;
}

}  // namespace

std::unique_ptr<flow::Module> kl_estimate_module() {
  auto module = std::make_unique<flow::HostModule>();
  module->add({.name = "kl_estimate",
               .kind = graph::Kind::kHost,
               .needs = {"uid", kMismatchedLogProb.name, kMismatchedReferenceLogProb.name},
               .makes = {kKlEstimate.name},
               .granularity = graph::Granularity::kIteration},
              with_kl_estimate);
  return module;
}

}  // namespace collimate::rlhf
