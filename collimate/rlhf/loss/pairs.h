#pragma once

#include "collimate/rlhf/types/loss.h"

// Losses on pairs share this: a pair is two adjacent rows, chosen then rejected.
namespace collimate::rlhf {

// [R] -> [R / 2]: chosen rows with `first` 0, rejected rows with 1.
at::Tensor every_second(const at::Tensor& rows, int64_t first);

// -(1 - smoothing) log σ(x) - smoothing · log σ(-x): the logistic loss when a part of the labels is wrong.
at::Tensor smoothed_logistic(const at::Tensor& logits, double smoothing);

// Negative log-likelihood of the chosen rows: mean over their trainable tokens in this micro-batch, by its share of
// the pairs.
at::Tensor chosen_likelihood_loss(const LossContext& context);

// rewards/chosen, /rejected, /margins and /accuracies from what a pair's rows are worth [R / 2].
void report_pairs(LossContext& context, const at::Tensor& chosen, const at::Tensor& rejected);

}  // namespace collimate::rlhf
