#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "collimate/rlhf/loss/list.h"
#include "collimate/rlhf/types/loss.h"

// Policy-gradient losses share this code: ratios of tokens or of sequences, the place of the KL, masks, the entropy
// bonus and metrics. A loss combines a ratio level (an option), a surrogate and an aggregate; its file says the last
// two. Shapes: R rows, M trainable tokens.
namespace collimate::rlhf {

// A surrogate reads these terms, all [M]. `ratio` is at the level that importance_sampling_level asks for.
struct PolicyTerms {
  const LossContext& context;
  at::Tensor ratio, token_log_ratio, log_probs, advantages;
};

// A token counts as clipped (actor/pg_clipfrac) where its ratio is below `low` and its advantage negative, or above
// `high` and its advantage positive.
struct ClipRange {
  double low, high;
};

// Returns [1 - epsilon, 1 + epsilon_high].
ClipRange clip_range(const AlgorithmOptions& options);

// A surrogate is the loss of each token that is differentiated.
struct Surrogate {
  at::Tensor (*loss)(const PolicyTerms& terms, const AlgorithmOptions& options);  // [M]
  ClipRange (*clips)(const AlgorithmOptions& options);
  std::vector<std::string> options;  // the options that the two read, beside those of every policy loss
};

// A survey is for a surrogate that compares numbers of the whole update. `lists` returns `count` lists for one
// micro-batch, [M] each; terms.context.surveyed(i) then has the i-th list of all micro-batches. `columns` are the
// columns that the surrogate reads beside those of every policy loss.
struct UpdateSurvey {
  size_t count = 0;
  std::vector<at::Tensor> (*lists)(const PolicyTerms& terms, const AlgorithmOptions& options) = nullptr;
  std::vector<std::string> columns = {};
};

// A policy loss, with its name in algorithm.loss_type.
struct PolicyLoss {
  std::string name, about;  // about: LossEntry::about
  Surrogate surrogate;
  // Reduces the loss of each token [M] to a scalar: it says how tokens and samples weigh.
  at::Tensor (*aggregate)(const at::Tensor& tokens, const LossContext& context, const LossSetting& setting);
  // Throws InputError when the loss of that name cannot work with the setting. Null: it works with any.
  void (*check)(const std::string& name, const LossSetting& setting) = nullptr;
  UpdateSurvey survey = {};
};

// These are aggregates. sequence_mean is the mean over samples of the mean over a sample's tokens.
at::Tensor sequence_mean(const at::Tensor& tokens, const LossContext& context, const LossSetting& setting);
// Returns the mean over the update's tokens.
at::Tensor update_token_mean(const at::Tensor& tokens, const LossContext& context, const LossSetting& setting);
// Returns the sum divided by the update's tokens or by an update's share of the iteration's, as token_normalizer says.
at::Tensor normalized_token_sum(const at::Tensor& tokens, const LossContext& context, const LossSetting& setting);

// Returns the entry of a file's policy losses, which read rollouts and have the options of every policy loss and of
// their own surrogates. The losses read `advantages`, `log_probs` as sampled (or `old_log_probs` if the batch has
// them) and, with beta > 0, `reference_log_probs`.
LossEntry policy_entry(std::vector<PolicyLoss> losses);

}  // namespace collimate::rlhf
