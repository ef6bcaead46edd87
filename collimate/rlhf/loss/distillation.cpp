#include <ATen/TensorOperators.h>

#include "collimate/batch/teacher_keys.h"
#include "collimate/rlhf/loss/list.h"
#include "collimate/rlhf/types/divergence.h"

namespace collimate::rlhf {
namespace {

using at::Tensor;

struct Distillation {
  Divergence divergence;
  double temperature, data_weight;

  Tensor value(LossContext& c) const {
    const Tensor tokens = divergence.value(c.outcomes(), c.teacher_outcomes());
    c.token_mean("actor/divergence", tokens);
    c.token_mean("actor/teacher_rest", c.teacher_rest().exp());
    c.token_mean("sft/nll", -c.log_probs());
    const Tensor taught = tokens.sum() * ((1 - data_weight) * temperature * temperature / c.global_tokens());
    return data_weight == 0 ? taught : taught - c.log_probs().sum() * (data_weight / c.global_tokens());
  }
};

Loss make_distillation(const std::string& type, const LossSetting& setting) {
  const AlgorithmOptions& o = setting.options;
  const Distillation distillation{divergence_of(type, o.jsd_beta), o.distillation_temperature, o.data_loss_weight};
  Loss loss{.name = type, .columns = {batch::kTeacherIds.name, batch::kTeacherLogProbs.name, batch::kTeacherRest.name}};
  loss.needs.listed = true;
  loss.needs.listed_temperature = static_cast<float>(o.distillation_temperature);
  loss.value = [distillation](LossContext& c) { return distillation.value(c); };
  return loss;
}

}  // namespace

// Losses on a teacher's distributions are (1 - data_loss_weight) T² D + data_loss_weight · nll, summed over the
// trainable tokens and divided by the global tokens. D is the divergence of divergence.h at temperature T; T² keeps
// the gradient's size (Hinton et al. 2015, "Distilling the Knowledge in a Neural Network"). TRL's GKDTrainer has jsd at
// T = 1 and no loss of the data. The K tokens that the teacher lists are compared one by one, all others together as
// one more outcome. By the data-processing inequality D is then at most the divergence over the whole vocabulary, and
// equals it if K is the vocabulary's size.
LossEntry distillation_losses() {
  return {"taught completions",
          {"forward_kl", "reverse_kl", "jsd"},
          [](const std::string& type) {
            std::vector<std::string> read = {"distillation_temperature", "data_loss_weight"};
            if (type == "jsd") read.emplace_back("jsd_beta");
            return read;
          },
          make_distillation,
          {{"forward_kl",
            "The KL divergence from the teacher to the student: the student covers all that the teacher does."},
           {"reverse_kl",
            "The KL divergence from the student to the teacher: the student keeps to what the teacher does most."},
           {"jsd", "The generalised Jensen-Shannon divergence, which jsd_beta places between the two, as in GKD."}}};
}

}  // namespace collimate::rlhf
