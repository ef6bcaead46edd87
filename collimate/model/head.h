#pragma once

#include "collimate/model/layers.h"
#include "collimate/model/model.h"

namespace collimate::model {

// A head reads the final hidden states: it is the LM head (tied or not), or a score or value head. It holds indices of
// parameters, and between steps the memory of recorded logits. Its gradients go to the weights. Shapes and errors are
// those of the functions in model.h.
class OutputHead {
 public:
  explicit OutputHead(const Weights& weights);
  std::vector<int> params() const;  // indices of its weight and bias

  LogProbResult log_probs(const tensor::Exec& exec, Weights& weights, const LogProbRequest& request);
  at::Tensor log_probs_backward(const tensor::Exec& exec, Weights& weights, const LogProbRequest& request,
                                const LogProbGradients& gradients, const LogProbRecord& record) const;
  at::Tensor logits(const tensor::Exec& exec, Weights& weights, const at::Tensor& hidden) const;
  at::Tensor scores(const tensor::Exec& exec, Weights& weights, const at::Tensor& hidden) const;
  at::Tensor scores_backward(const tensor::Exec& exec, Weights& weights, const at::Tensor& hidden,
                             const at::Tensor& score_gradient) const;

  // Gives back the memory of recorded logits.
  void release();

 private:
  const Linear& vocabulary() const;  // throws InputError without an LM head
  const Linear& score() const;       // throws InputError without a score or value head

  // Returns memory for recorded logits; null for 0 bytes, or for more than kMostRecordedLogitBytes.
  std::shared_ptr<tensor::Buffer> logits_memory(const tensor::Exec& exec, const std::string& owner, int64_t bytes);

  Linear vocabulary_, score_;
  std::shared_ptr<tensor::Buffer> logits_;
};

}  // namespace collimate::model
