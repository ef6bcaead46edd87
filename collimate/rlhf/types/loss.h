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

// Shapes in this folder: R is the number of rows (samples) of a micro-batch, M the number of its trainable tokens,
// which are in row order, without padding.

using batch::GlobalCounts;
using batch::Quantities;
using batch::QuantityNeeds;

// A context is all that one evaluation of a loss sees. Micro-batches, packing and ranks stay hidden: a loss is a sum
// over the context's tokens or rows divided by global counts, so that the sum over micro-batches is the loss of the
// whole update.
class LossContext {
 public:
  LossContext(const Batch& rows, Quantities quantities, GlobalCounts counts, batch::Surveys surveys = {});

  const Batch& rows() const { return rows_; }
  const at::Tensor& log_probs() const { return quantities_.log_probs; }
  const at::Tensor& entropy() const { return quantities_.entropy; }
  const at::Tensor& values() const { return quantities_.values; }
  const at::Tensor& row_scores() const { return quantities_.row_scores; }
  const at::Tensor& token_scores() const { return quantities_.token_scores; }
  const at::Tensor& log_collision() const { return quantities_.log_collision; }
  // Log-probs [M, K + 1], by the model and by the teacher, of the K tokens that the teacher lists and, last, of all
  // other tokens together; teacher_rest is that last one.
  at::Tensor outcomes() const;
  at::Tensor teacher_outcomes() const;
  at::Tensor teacher_rest() const;  // [M]
  double global_tokens() const { return counts_.tokens; }
  double global_rows() const { return counts_.rows; }
  double global_chosen_tokens() const { return counts_.chosen_tokens; }
  // Returns the i-th list of Loss::survey, of all micro-batches of the update together.
  const batch::Survey& surveyed(size_t i) const { return surveys_.at(first_survey_ + i); }
  // From now on list 0 is the one numbered `first`: in a sum of losses each counts its own surveys from 0.
  void count_surveys_from(size_t first) { first_survey_ = first; }

  at::Tensor per_token(const Key<float>& key) const;   // [M] the column at the trainable tokens
  at::Tensor per_row(const Key<float>& key) const;     // [R]
  at::Tensor row_sum(const at::Tensor& tokens) const;  // [M] -> [R]
  at::Tensor to_tokens(const at::Tensor& rows) const;  // [R] -> [M], each row's number at its tokens
  at::Tensor row_tokens() const;                       // [R] trainable tokens of each row, as floats
  const std::vector<int64_t>& token_counts() const { return token_counts_; }  // [R] row_tokens() on the host

  // Adds to a metric: Σ numerator / Σ denominator over all micro-batches, or Σ numerator with denominators of 0.
  void metric(const std::string& name, const at::Tensor& numerator, double denominator);
  void token_mean(const std::string& name, const at::Tensor& tokens);  // [M]
  void row_mean(const std::string& name, const at::Tensor& rows);      // [R]
  const std::map<std::string, std::pair<double, double>>& metrics() const { return metrics_; }

 private:
  // Returns the values as a tensor on the device where the quantities lie.
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

// Per token: 1 in the answer, 0 in the prompt. Rows have it if `trainable` marks the prompt too.
inline const Key<float> kCompletion{.name = "completion", .ragged = true};

// The chosen row's score should exceed the rejected row's by this margin, which both rows of a pair have.
inline const Key<float> kMargin{"margin"};

// The number of trainable tokens of all rows of the iteration, which is equal in every row.
inline const Key<float> kIterationTokens{"iteration_tokens"};

// Where a step of an answer ends, which is where `trainable` is 1: 1 if the step is right, else 0. [L]
inline const Key<float> kStepRight{.name = "step_right", .ragged = true};
// There a process reward model gives the log-odds that the step is right. [L]
inline const Key<float> kStepScores{.name = "step_scores", .ragged = true};

// A marked answer has 1 if it is desirable, else 0.
inline const Key<float> kDesirable{"desirable"};
// KTO's estimate of the KL, max(0, mean log-ratio of mismatched answers), is equal in every row of an iteration.
inline const Key<float> kKlEstimate{"kl_estimate"};
// kKlEstimate is made from these columns: each row's prompt followed by the answer to another prompt [any], 1 at the
// answer's tokens [any], and the answer's log-prob by the policy and by the reference.
inline const Key<int32_t> kMismatchedIds{.name = "mismatched_ids", .ragged = true};
inline const Key<uint8_t> kMismatchedTrainable{.name = "mismatched_trainable", .ragged = true};
inline const Key<float> kMismatchedLogProb{"mismatched_log_prob"};
inline const Key<float> kMismatchedReferenceLogProb{"mismatched_reference_log_prob"};

// A loss says what it needs, and `value` returns its value on one micro-batch, a scalar connected to the leaves that it
// asked for. A loss that compares samples of the whole update, as a quantile does, surveys so many lists of numbers:
// `survey` returns the lists of one micro-batch, [any] each, and `value` reads the lists of all micro-batches.
struct Loss {
  std::string name;
  QuantityNeeds needs;
  std::vector<std::string> columns;  // that it reads beside ids and trainable
  std::function<at::Tensor(LossContext&)> value;
  size_t surveys = 0;
  std::function<std::vector<at::Tensor>(LossContext&)> survey = {};

  template <class T>
  bool reads(const Key<T>& key) const {
    return std::find(columns.begin(), columns.end(), key.name) != columns.end();
  }
};

}  // namespace collimate::rlhf
