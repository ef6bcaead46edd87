#pragma once

#include "collimate/rlhf/types/loss.h"

// Losses on pairs share these functions. A pair is two adjacent rows: the chosen one, then the rejected one.
namespace collimate::rlhf {

// Returns [R / 2] of [R]: the entries of the chosen rows with `first` 0, of the rejected rows with 1.
at::Tensor every_second(const at::Tensor& rows, int64_t first);

// Returns -(1 - smoothing) log σ(x) - smoothing · log σ(-x), the logistic loss when the share `smoothing` of the
// labels is wrong.
at::Tensor smoothed_logistic(const at::Tensor& logits, double smoothing);

// Returns the negative log-likelihood of the chosen rows, summed over their trainable tokens in this micro-batch and
// divided by the number of such tokens in the whole update.
at::Tensor chosen_likelihood_loss(const LossContext& context);

// Reports the metrics rewards/chosen, /rejected, /margins and /accuracies from the implicit rewards [R / 2] of the
// chosen and of the rejected rows.
void report_pairs(LossContext& context, const at::Tensor& chosen, const at::Tensor& rejected);

// Reports the metrics reward/accuracy, /margin and /mean from the scores at the rows' last tokens.
void report_scores(LossContext& context);

}  // namespace collimate::rlhf
