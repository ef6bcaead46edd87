#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "collimate/train/data_ranks.h"
#include "collimate/train/head_rows.h"
#include "collimate/train/learner_options.h"
#include "collimate/train/micro_batch.h"

namespace collimate::train {

// Takes one micro-batch through forward, loss and backward of this rank's stage, or of one of its runs. Streams and
// their gradients are those of Model::forward_train and backward.
class MicroStep {
 public:
  // All references must outlive the MicroStep. `noise` is that of pack_rows.
  MicroStep(model::Model& model, const LearnerOptions& options, const model::ContextRanks& context, const Batch& rows,
            std::optional<uint64_t> noise);
  MicroStep(const MicroStep&) = delete;
  MicroStep& operator=(const MicroStep&) = delete;

  void forward(const at::Tensor& stream, int run);
  int run() const { return run_; }                      // that forward() took
  bool ends() const { return model_.ends(run_); }       // whether it is the last stage's, which has the head
  const at::Tensor& stream() const { return hidden_; }  // what forward() returned for this stage

  // Computes what the objective needs, and makes the leaves. For the last stage, behind forward().
  void compute_quantities(const Objective& objective);
  at::Tensor loss(const Objective& objective, const batch::GlobalCounts& counts, const batch::Surveys& surveys) const {
    return objective.loss(rows_, leaves_, counts, surveys);
  }
  std::vector<at::Tensor> survey(const Objective& objective) const { return objective.survey(rows_, leaves_); }
  // Returns dL/dhidden: goes from the loss to the leaves by autograd, then to hidden states by our own backward.
  at::Tensor hidden_gradient(const at::Tensor& loss);

  // Goes on to the weights. Returns the gradient of the stream of the stage before, as Model::backward.
  at::Tensor backward(const at::Tensor& gradient, DataRanks& ranks) {
    return model_.backward(std::move(record_), gradient, [&](int segment) { ranks.segment_done(segment); });
  }

  const Batch& rows() const { return rows_; }
  model::ForwardRecord& record() { return *record_; }
  const PackedRows& packed() const { return packed_; }
  // Returns the number of tokens whose stream this rank has.
  int64_t own_tokens() const;
  const batch::Quantities& quantities() const { return leaves_; }
  const model::RouterAgreement& routes() const { return routes_; }

 private:
  at::Tensor leaf(const HeadRows& of, const at::Tensor& values) const;
  // Returns log Σ p² of the distributions of request_; `log_probs` are those of its targets.
  at::Tensor log_collision(const at::Tensor& log_probs) const;
  void set_listed(const model::LogProbResult& result);
  void compute_listed(const batch::QuantityNeeds& needs);
  // Adds to the gradient of the hidden states what the gradients of log-probs, entropy and listed tokens give them.
  void add_head_gradients(const batch::Quantities& gradient, const at::Tensor& of_hidden);
  batch::Quantities leaf_gradients(const at::Tensor& loss) const;

  model::Model& model_;
  const LearnerOptions& options_;
  const Batch& rows_;
  PackedRows packed_;
  model::RouterAgreement routes_;
  int run_ = 0;
  std::unique_ptr<model::ForwardRecord> record_;
  HeadRows predicted_, trained_, ended_;
  at::Tensor hidden_, predictors_, predicting_, trained_rows_, trained_hidden_, last_, ending_;
  model::LogProbRequest request_, listed_request_;  // the latter is used where listed tokens have another temperature
  model::LogProbRecord log_prob_record_, listed_record_;
  batch::Quantities leaves_;
};

}  // namespace collimate::train
