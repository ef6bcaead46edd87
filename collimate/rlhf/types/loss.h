#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "collimate/batch/batch.h"
#include "collimate/batch/quantities.h"
#include "collimate/batch/standard_keys.h"

namespace collimate::rlhf {

// Shapes in this folder: R rows (samples) of a micro-batch, M its trainable tokens in row order, without padding.

using batch::GlobalCounts;
using batch::Quantities;
using batch::QuantityNeeds;

// One loss evaluation sees this. It hides micro-batches, packing and ranks: a loss is a sum over its tokens or rows
// divided by global counts, so that the sum over micro-batches is the loss of the whole update.
class LossContext {
 public:
  LossContext(const Batch& rows, Quantities quantities, GlobalCounts counts, batch::Surveys surveys = {});

  const Batch& rows() const { return rows_; }
  const at::Tensor& log_probs() const { return quantities_.log_probs; }
  const at::Tensor& entropy() const { return quantities_.entropy; }
  const at::Tensor& values() const { return quantities_.values; }
  const at::Tensor& row_scores() const { return quantities_.row_scores; }
  const at::Tensor& log_collision() const { return quantities_.log_collision; }
  // Log-probs [M, K + 1] of what a teacher lists, and of all other tokens together, by the model and by the teacher.
  at::Tensor outcomes() const;
  at::Tensor teacher_outcomes() const;
  at::Tensor teacher_rest() const;  // [M]
  double global_tokens() const { return counts_.tokens; }
  double global_rows() const { return counts_.rows; }
  double global_chosen_tokens() const { return counts_.chosen_tokens; }
  // The i-th list that Loss::survey told of every micro-batch.
  const batch::Survey& surveyed(size_t i) const { return surveys_.at(first_survey_ + i); }
  // This is for a sum of losses, each of which counts its surveys from 0.
  void count_surveys_from(size_t first) { first_survey_ = first; }

  at::Tensor per_token(const Key<float>& key) const;   // [M] a per-token column at the trainable tokens
  at::Tensor per_row(const Key<float>& key) const;     // [R]
  at::Tensor row_sum(const at::Tensor& tokens) const;  // [M] -> [R]
  at::Tensor to_tokens(const at::Tensor& rows) const;  // [R] -> [M], each row's number at its tokens
  at::Tensor row_tokens() const;                       // [R] trainable tokens of each row, as floats
  const std::vector<int64_t>& token_counts() const { return token_counts_; }  // [R] the same for the host

  // Metrics add up over micro-batches: the report is Σ numerator / Σ denominator, or the plain sum with denominator 0.
  void metric(const std::string& name, const at::Tensor& numerator, double denominator);
  void token_mean(const std::string& name, const at::Tensor& tokens);  // [M]
  void row_mean(const std::string& name, const at::Tensor& rows);      // [R]
  const std::map<std::string, std::pair<double, double>>& metrics() const { return metrics_; }

 private:
  // Puts values on the device where the quantities lie.
  template <class T>
  at::Tensor on_device(const std::vector<T>& values) const;

  const Batch& rows_;
  Quantities quantities_;
  GlobalCounts counts_;
  batch::Surveys surveys_;
  size_t first_survey_ = 0;
  at::Tensor row_of_token_;            // [M] int64
  std::vector<int64_t> token_counts_;  // [R]
  std::map<std::string, std::pair<double, double>> metrics_;
};

// 1 or 0 per token: the answer, where `trainable` marks the prompt too.
inline const Key<float> kCompletion{.name = "completion", .ragged = true};

// A chosen row's score is to exceed the rejected one's by this much; both rows of a pair have it.
inline const Key<float> kMargin{"margin"};

// Trainable tokens of all rows of the iteration, the same in every row.
inline const Key<float> kIterationTokens{"iteration_tokens"};

// Marked answers have 1 or 0, and max(0, mean log-ratio of mismatched answers), the same in every row of an update.
inline const Key<float> kDesirable{"desirable"};
inline const Key<float> kKlEstimate{"kl_estimate"};
// That estimate is made of these: each row's prompt with the answer to another prompt [any], 1 where the answer is, and
// the answer's log-prob by the policy and by the reference.
inline const Key<int32_t> kMismatchedIds{.name = "mismatched_ids", .ragged = true};
inline const Key<uint8_t> kMismatchedTrainable{.name = "mismatched_trainable", .ragged = true};
inline const Key<float> kMismatchedLogProb{"mismatched_log_prob"};
inline const Key<float> kMismatchedReferenceLogProb{"mismatched_reference_log_prob"};

// A loss: what it needs, and its value on one micro-batch (a scalar connected to the leaves it asked for). One that
// compares samples of the whole update, as a quantile does, says how many lists of numbers it surveys: `survey` tells
// those of one micro-batch, [any] each, and `value` reads those of all.
struct Loss {
  std::string name;
  QuantityNeeds needs;
  std::vector<std::string> columns;  // columns it reads beside ids and trainable
  std::function<at::Tensor(LossContext&)> value;
  size_t surveys = 0;
  std::function<std::vector<at::Tensor>(LossContext&)> survey = {};

  template <class T>
  bool reads(const Key<T>& key) const {
    return std::find(columns.begin(), columns.end(), key.name) != columns.end();
  }
};

}  // namespace collimate::rlhf
