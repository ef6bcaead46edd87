#include <ATen/TensorOperators.h>

#include "collimate/rlhf/loss/list.h"

namespace collimate::rlhf {
namespace {

using at::Tensor;

// Reports the mean of `values` over the rows whose `label` is 1, or nothing if there is no such row.
void mean_of(LossContext& c, const std::string& name, const Tensor& values, const Tensor& label) {
  const double rows = label.sum().item<double>();
  if (rows > 0) c.metric(name, (values.detach() * label).sum(), rows);
}

struct Kto {
  bool baseline;  // z is subtracted
  double beta, desirable_weight, undesirable_weight;

  Tensor value(LossContext& c) const {
    const Tensor ratio = c.row_sum(c.log_probs()) - c.row_sum(c.per_token(batch::kReferenceLogProbs));
    const Tensor desirable = c.per_row(kDesirable);
    const Tensor undesirable = 1 - desirable;
    const Tensor margin = (baseline ? ratio - c.per_row(kKlEstimate) : ratio) * beta;
    const Tensor gain = 1 - margin.sigmoid();
    const Tensor harm = baseline ? 1 - (-margin).sigmoid() : margin.sigmoid();
    mean_of(c, "rewards/chosen", ratio * beta, desirable);
    mean_of(c, "rewards/rejected", ratio * beta, undesirable);
    const Tensor rows = gain * desirable * desirable_weight + harm * undesirable * undesirable_weight;
    return rows.sum() / c.global_rows();
  }
};

Loss make_kto(const std::string& type, const LossSetting& setting) {
  const AlgorithmOptions& o = setting.options;
  const Kto kto{type == "kto", o.beta->value_or(kPairBeta), o.desirable_weight, o.undesirable_weight};
  Loss loss{.name = type, .columns = {batch::kReferenceLogProbs.name, kDesirable.name}};
  if (kto.baseline) loss.columns.push_back(kKlEstimate.name);
  loss.value = [kto](LossContext& c) { return kto.value(c); };
  return loss;
}

}  // namespace

// Losses on single answers that are marked desirable or not (Ethayarajh et al. 2024). Names, formulas and defaults are
// those of TRL 1.16's KTOTrainer. With the log-ratio c of a row against the reference and the KL estimate z, a
// desirable row has 1 - σ(beta (c - z)), an undesirable one 1 - σ(beta (z - c)); the loss is the weighted mean over
// rows. apo_zero_unpaired has no z, and σ(beta c) for undesirable rows. The losses read `reference_log_probs`,
// `desirable` and, for kto, z as `kl_estimate`, which is equal in every row and has no gradient (see kKlEstimate).
LossEntry kto_losses() {
  return {"marked",
          {"kto", "apo_zero_unpaired"},
          {"beta", "desirable_weight", "undesirable_weight"},
          make_kto,
          {{"kto",
            "KTO: desirable answers gain likelihood against the reference and undesirable ones lose it, both "
            "measured from an estimate of the KL."},
           {"apo_zero_unpaired", "KTO without the estimate of the KL."}}};
}

}  // namespace collimate::rlhf
