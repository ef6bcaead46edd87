#include "collimate/rlhf/loss/kto.h"

#include <ATen/TensorOperators.h>

#include "collimate/base/error.h"

namespace collimate::rlhf {
namespace {

using at::Tensor;

// Mean of `values` over the rows of one label; nothing is reported where there is none.
void mean_of(LossContext& c, const std::string& name, const Tensor& values, const Tensor& label) {
  const double rows = label.sum().item<double>();
  if (rows > 0) c.metric(name, (values.detach() * label).sum(), rows);
}

}  // namespace

Loss kto_loss(const KtoOptions& options) {
  const bool apo = options.loss_type == "apo_zero_unpaired";
  if (!apo && options.loss_type != "kto")
    throw base::InputError(
        base::expectation("algorithm.loss_type", "one of kto, apo_zero_unpaired", "\"" + options.loss_type + "\""));
  Loss loss{.name = options.loss_type, .columns = {batch::kReferenceLogProbs.name, kDesirable.name}};
  if (!apo) loss.columns.push_back(kKlEstimate.name);
  loss.value = [options, apo](LossContext& c) {
    const Tensor ratio = c.row_sum(c.log_probs()) - c.row_sum(c.per_token(batch::kReferenceLogProbs));
    const Tensor desirable = c.per_row(kDesirable);
    const Tensor undesirable = 1 - desirable;
    const Tensor margin = (apo ? ratio : ratio - c.per_row(kKlEstimate)) * options.beta;
    const Tensor gain = 1 - margin.sigmoid();
    const Tensor harm = apo ? margin.sigmoid() : 1 - (-margin).sigmoid();
    mean_of(c, "rewards/chosen", ratio * options.beta, desirable);
    mean_of(c, "rewards/rejected", ratio * options.beta, undesirable);
    const Tensor rows = gain * desirable * options.desirable_weight + harm * undesirable * options.undesirable_weight;
    return rows.sum() / c.global_rows();
  };
  return loss;
}

}  // namespace collimate::rlhf
