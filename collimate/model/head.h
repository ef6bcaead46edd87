#pragma once

#include "collimate/model/layers.h"
#include "collimate/model/model.h"

namespace collimate::model {

// A head reads the final hidden states: the LM head (tied or not), or a score or value head. Holds indices, and the
// memory of recorded logits between steps. Its gradients go to the weights; contracts as in model.h.
class OutputHead {
 public:
  explicit OutputHead(const Weights& weights);
  std::vector<int> params() const;  // weight and bias

  LogProbResult log_probs(const tensor::Exec& exec, Weights& weights, const LogProbRequest& request);
  at::Tensor log_probs_backward(const tensor::Exec& exec, Weights& weights, const LogProbRequest& request,
                                const LogProbGradients& gradients, const LogProbRecord& record) const;
  at::Tensor logits(const tensor::Exec& exec, Weights& weights, const at::Tensor& hidden) const;
  at::Tensor scores(const tensor::Exec& exec, Weights& weights, const at::Tensor& hidden) const;
  at::Tensor scores_backward(const tensor::Exec& exec, Weights& weights, const at::Tensor& hidden,
                             const at::Tensor& score_gradient) const;

  // Gives the memory of recorded logits back.
  void release();

 private:
  const Linear& vocabulary() const;  // the LM head; InputError without one
  const Linear& score() const;       // the same of the score or value head

  // Null when there are too many.
  std::shared_ptr<tensor::Buffer> logits_memory(const tensor::Exec& exec, const std::string& owner, int64_t bytes);

  Linear vocabulary_, score_;
  std::shared_ptr<tensor::Buffer> logits_;
};

}  // namespace collimate::model
