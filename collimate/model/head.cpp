#include "collimate/model/head.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "collimate/base/error.h"
#include "collimate/tensor/ops/log_prob.h"

namespace collimate::model {
namespace {

struct Rows {
  const float* data;
  int64_t rows, stride;
};

Rows rows_of(const at::Tensor& hidden, int64_t width) {
  COLLIMATE_CHECK(hidden.dim() == 2 && hidden.size(1) == width && hidden.scalar_type() == at::kFloat &&
                      (hidden.size(0) == 0 || hidden.stride(1) == 1),
                  "hidden states must be fp32 [M, {}] with adjacent columns", width);
  return {static_cast<const float*>(hidden.data_ptr()), hidden.size(0), hidden.stride(0)};
}

// A gradient as adjacent floats; what autograd gives may be an expanded number. Undefined stays undefined.
at::Tensor dense(const at::Tensor& values, int64_t count) {
  if (!values.defined()) return values;
  COLLIMATE_CHECK(values.numel() == count && values.scalar_type() == at::kFloat, "expected fp32 [{}]", count);
  return values.contiguous();
}
const float* data_of(const at::Tensor& values) {
  return values.defined() ? static_cast<const float*>(values.data_ptr()) : nullptr;
}

float* floats(const at::Tensor& values) { return static_cast<float*>(values.data_ptr()); }

tensor::LogProbHead head_args(Weights& weights, int head, const LogProbRequest& request) {
  const Rows hidden = rows_of(request.hidden, weights.shape().hidden);
  COLLIMATE_CHECK(static_cast<int64_t>(request.targets.size()) == hidden.rows, "{} targets for {} rows",
                  request.targets.size(), hidden.rows);
  tensor::LogProbHead args;
  args.hidden = hidden.data;
  args.hidden_stride = hidden.stride;
  args.rows = hidden.rows;
  args.head = &weights.panels(head);
  args.temperature = request.temperature;
  args.targets = request.targets.data();
  return args;
}

}  // namespace

OutputHead::OutputHead(const Weights& weights) {
  const shape::ModelShape& shape = weights.shape();
  if (shape.head != shape::Head::kLanguageModel) {
    score_ = weights.index_of("score.weight");
  } else if (!shape.tied_embeddings) {
    vocabulary_ = weights.index_of("lm_head.weight");
  } else {
    vocabulary_ = 0;  // the embedding, first of all parameters
  }
}

int OutputHead::vocabulary() const {
  if (vocabulary_ < 0)
    throw base::InputError(base::expectation("model head", "a language model head", "a score or value head",
                                             "a model with lm_head for log-probs"));
  return vocabulary_;
}

int OutputHead::score() const {
  if (score_ < 0)
    throw base::InputError(base::expectation("model head", "a score or value head", "a language model head",
                                             "head: score for this model"));
  return score_;
}

std::shared_ptr<tensor::Buffer> OutputHead::logits_memory(int64_t bytes) {
  if (bytes > kMostRecordedLogitBytes || bytes == 0) return nullptr;
  if (logits_ == nullptr || logits_->bytes() < bytes || logits_.use_count() > 1) {
    logits_.reset();
    logits_ = std::make_shared<tensor::Buffer>(bytes);
  }
  return logits_;
}

LogProbResult OutputHead::log_probs(const tensor::Exec& exec, Weights& weights, const LogProbRequest& request) {
  const tensor::LogProbHead args = head_args(weights, vocabulary(), request);
  LogProbResult result;
  result.log_probs = at::empty({args.rows}, at::kFloat);
  result.argmax = at::empty({args.rows}, at::kInt);
  if (request.entropy) result.entropy = at::empty({args.rows}, at::kFloat);
  tensor::LogProbOutput out;
  out.log_prob = floats(result.log_probs);
  out.argmax = static_cast<int32_t*>(result.argmax.data_ptr());
  out.entropy = request.entropy ? floats(result.entropy) : nullptr;
  result.top.resize(static_cast<size_t>(args.rows * request.top_count));
  if (request.top_count > 0) out.top = result.top.data(), out.top_count = request.top_count;
  if (request.record) {
    const tensor::MemoryScope tagged(weights.options().tag + "/logits");
    const auto logits = logits_memory(args.rows * args.head->n * static_cast<int64_t>(sizeof(float)));
    result.record = {at::empty({2, args.rows}, at::kFloat), result.entropy, logits};
    out.max = floats(result.record.normalizers);
    out.log_sum = out.max + args.rows;
    out.logits = logits == nullptr ? nullptr : logits->floats();
  }
  tensor::log_softmax_gather(exec, args, out);
  return result;
}

at::Tensor OutputHead::log_probs_backward(const tensor::Exec& exec, Weights& weights, const LogProbRequest& request,
                                          const at::Tensor& log_prob_gradient, const at::Tensor& entropy_gradient,
                                          const LogProbRecord& record) const {
  const int head = vocabulary();
  const tensor::LogProbHead args = head_args(weights, head, request);
  const int64_t width = weights.shape().hidden;
  at::Tensor hidden_gradient = at::empty({args.rows, width}, at::kFloat);
  tensor::LogProbGrad grad;
  const at::Tensor log_prob_part = dense(log_prob_gradient, args.rows),
                   entropy_part = dense(entropy_gradient, args.rows);
  grad.dlog_prob = data_of(log_prob_part);
  grad.dentropy = data_of(entropy_part);
  grad.w = weights.param(head);
  grad.dhidden = floats(hidden_gradient);
  grad.dhidden_stride = width;
  grad.dw = weights.param_gradient(head);
  tensor::LogProbForward forward;
  if (record.normalizers.defined()) {
    COLLIMATE_CHECK(record.normalizers.size(1) == args.rows, "a record of {} rows", record.normalizers.size(1));
    forward.max = floats(record.normalizers);
    forward.log_sum = forward.max + args.rows;
    forward.entropy = data_of(record.entropy);
    forward.logits = record.logits == nullptr ? nullptr : record.logits->floats();
  }
  tensor::log_softmax_gather_backward(exec, args, grad, forward);
  return hidden_gradient;
}

at::Tensor OutputHead::logits(const tensor::Exec& exec, Weights& weights, const at::Tensor& hidden) const {
  const int head = vocabulary();
  const int64_t vocabulary_size = weights.shape().vocabulary;
  const Rows in = rows_of(hidden, weights.shape().hidden);
  at::Tensor out = at::empty({in.rows, vocabulary_size}, at::kFloat);
  tensor::linear(exec, in.data, in.stride, in.rows, weights.panels(head), floats(out), vocabulary_size);
  return out;
}

at::Tensor OutputHead::scores(const tensor::Exec& exec, Weights& weights, const at::Tensor& hidden) const {
  const Rows in = rows_of(hidden, weights.shape().hidden);
  at::Tensor out = at::empty({in.rows}, at::kFloat);
  tensor::linear(exec, in.data, in.stride, in.rows, weights.panels(score()), floats(out), 1);
  return out;
}

at::Tensor OutputHead::scores_backward(const tensor::Exec& exec, Weights& weights, const at::Tensor& hidden,
                                       const at::Tensor& score_gradient) const {
  const int head = score();
  const int64_t width = weights.shape().hidden;
  const Rows in = rows_of(hidden, width);
  const at::Tensor score_part = dense(score_gradient, in.rows);
  const float* dy = data_of(score_part);
  at::Tensor hidden_gradient = at::empty({in.rows, width}, at::kFloat);
  const tensor::ComputeType type = weights.options().compute;
  tensor::linear_grad_input(exec, type, dy, 1, in.rows, weights.param(head), 1, width, floats(hidden_gradient), width);
  if (float* dw = weights.param_gradient(head); dw != nullptr)
    tensor::linear_grad_weight(exec, type, dy, 1, in.data, in.stride, in.rows, 1, width, dw);
  return hidden_gradient;
}

}  // namespace collimate::model
