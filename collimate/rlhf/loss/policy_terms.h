#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "collimate/rlhf/loss/list.h"
#include "collimate/rlhf/types/loss.h"

// Policy-gradient losses share these: ratios of tokens or of sequences, the place of the KL, masks, the entropy bonus
// and metrics. A loss is ratio level × surrogate × token weights; its file says the last two. Shapes: R rows, M
// trainable tokens.
namespace collimate::rlhf {

// A surrogate sees these terms, all [M].
struct PolicyTerms {
  const LossContext& context;
  at::Tensor ratio, token_log_ratio, log_probs, advantages;
};

// A token counts as clipped (actor/pg_clipfrac) where its ratio is below `low` and its advantage negative, or above
// `high` and its advantage positive.
struct ClipRange {
  double low, high;
};

// 1 - epsilon and 1 + epsilon_high.
ClipRange clip_range(const AlgorithmOptions& options);

// A Surrogate is what is differentiated at each token.
struct Surrogate {
  at::Tensor (*loss)(const PolicyTerms& terms, const AlgorithmOptions& options);  // [M]
  ClipRange (*clips)(const AlgorithmOptions& options);
  std::vector<std::string> options;  // that both read, beside those of every policy loss
};

// Lists of numbers of the whole update that a surrogate compares: `count` of them, [M] each of a micro-batch, as
// terms.context.surveyed(i) then has them of all; and the columns that it reads beside those of every policy loss.
struct UpdateSurvey {
  size_t count = 0;
  std::vector<at::Tensor> (*lists)(const PolicyTerms& terms, const AlgorithmOptions& options) = nullptr;
  std::vector<std::string> columns = {};
};

// A policy loss by its name in algorithm.loss_type.
struct PolicyLoss {
  std::string name, about;  // about: LossEntry::about
  Surrogate surrogate;
  // Scalar from the loss of each token: how tokens and samples weigh.
  at::Tensor (*aggregate)(const at::Tensor& tokens, const LossContext& context, const LossSetting& setting);
  // InputError where the loss of that name cannot do with the setting; null: it can with any.
  void (*check)(const std::string& name, const LossSetting& setting) = nullptr;
  UpdateSurvey survey = {};
};

// Aggregates: the mean over samples of their tokens' mean; the mean over the update's tokens; the same, or by an
// update's share of the iteration's tokens, as token_normalizer says.
at::Tensor sequence_mean(const at::Tensor& tokens, const LossContext& context, const LossSetting& setting);
at::Tensor update_token_mean(const at::Tensor& tokens, const LossContext& context, const LossSetting& setting);
at::Tensor normalized_token_sum(const at::Tensor& tokens, const LossContext& context, const LossSetting& setting);

// The entry of a file's policy losses: on rollouts, with the options of every policy loss and of each one's surrogate.
// They read `advantages`, `log_probs` as sampled, or `old_log_probs` where the batch has them, and, with beta > 0,
// `reference_log_probs`.
LossEntry policy_entry(std::vector<PolicyLoss> losses);

}  // namespace collimate::rlhf
