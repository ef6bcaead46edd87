#include "collimate/model/head.h"

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/model/head_parts.h"
#include "collimate/tensor/ops/log_prob.h"
#include "collimate/tensor/ops/memory.h"
#include "collimate/tensor/results.h"

namespace collimate::model {
namespace {

using tensor::device_data;
using tensor::empty_result;

struct Rows {
  const float* data;
  int64_t rows, stride;
};

Rows rows_of(const at::Tensor& hidden, int64_t width) {
  COLLIMATE_CHECK(hidden.dim() == 2 && hidden.size(1) == width && hidden.scalar_type() == at::kFloat &&
                      (hidden.size(0) == 0 || hidden.stride(1) == 1),
                  "hidden states must be fp32 [M, {}] with adjacent columns", width);
  return {device_data(hidden), hidden.size(0), hidden.stride(0)};
}

// Returns a gradient as adjacent floats, as autograd may give an expanded number. An undefined one stays undefined.
at::Tensor dense(const at::Tensor& values, int64_t count) {
  if (!values.defined()) return values;
  COLLIMATE_CHECK(values.numel() == count && values.scalar_type() == at::kFloat, "expected fp32 [{}]", count);
  return values.contiguous();
}
// Holds a request's rows and targets as the operations read them.
struct HeadArgs {
  tensor::OnDevice<int32_t> targets;
  tensor::LogProbHead head;
};

HeadArgs head_args(const tensor::Exec& exec, Weights& weights, const Linear& head, const LogProbRequest& request) {
  const Rows hidden = rows_of(request.hidden, head.in);
  COLLIMATE_CHECK(static_cast<int64_t>(request.targets.size()) == hidden.rows, "{} targets for {} rows",
                  request.targets.size(), hidden.rows);
  HeadArgs args{{exec, request.targets}, {}};
  args.head.hidden = hidden.data;
  args.head.hidden_stride = hidden.stride;
  args.head.rows = hidden.rows;
  args.head.head = &weights.panels(head.weight);
  args.head.bias = bias_of(weights, head);
  args.head.temperature = request.temperature;
  args.head.softcap = static_cast<float>(weights.shape().logit_softcap);
  args.head.targets = args.targets.data();
  if (const shape::ParamSpec& spec = base::at(weights.params(), head.weight); spec.cut == 0)
    args.head.first = spec.pieces.front().first, args.head.whole = spec.whole;
  return args;
}

// Returns logits [rows, vocabulary], of which each tensor rank has computed its columns, `mine`.
at::Tensor join_parts(const tensor::Exec& exec, const Weights& weights, const Linear& head, const at::Tensor& mine) {
  const shape::ParamSpec& spec = base::at(weights.params(), head.weight);
  const int64_t rows = mine.size(0), all = rows * spec.whole;
  at::Tensor out = empty_result(exec, {rows, spec.whole});
  tensor::zero(exec, all, device_data(out));
  tensor::copy_heads(exec, {rows, 1, head.out}, {device_data(mine), head.out, 0},
                     {device_data(out) + spec.pieces.front().first, spec.whole, 0});
  weights.tensor().sum(exec, device_data(out), all);
  return out;
}

Linear head_layer(const Weights& weights, int weight, int bias) {
  const std::vector<int64_t>& sizes = base::at(weights.params(), weight).sizes;
  Linear layer{weight, bias, sizes[1], sizes[0]};
  layer.cut = base::at(weights.params(), weight).cut;
  return layer;
}

}  // namespace

std::vector<int> OutputHead::params() const {
  std::vector<int> indices;
  for (const int index : {vocabulary_.weight, vocabulary_.bias, score_.weight, score_.bias})
    if (index >= 0) indices.push_back(index);
  return indices;
}

OutputHead::OutputHead(const Weights& weights) {
  const shape::ModelShape& shape = weights.shape();
  const int last = static_cast<int>(shape.layers()) + 1;
  if (shape.head != shape::Head::kLanguageModel) {
    score_ = head_layer(weights, weights.index_of(shape::Part::kScore, last), -1);
  } else {
    const int weight = shape.tied_embeddings ? weights.index_of(shape::Part::kEmbedding, 0)
                                             : weights.index_of(shape::Part::kHead, last);
    vocabulary_ = head_layer(weights, weight, weights.index_of(shape::Part::kHead, last, /*bias=*/true));
  }
}

const Linear& OutputHead::vocabulary() const {
  if (vocabulary_.weight < 0)
    throw base::InputError(base::expectation("model head", "a language model head", "a score or value head",
                                             "a model with lm_head for log-probs"));
  return vocabulary_;
}

const Linear& OutputHead::score() const {
  if (score_.weight < 0)
    throw base::InputError(base::expectation("model head", "a score or value head", "a language model head",
                                             "head: score for this model"));
  return score_;
}

void OutputHead::release() {
  if (logits_ != nullptr && logits_.use_count() == 1) logits_->discard();
  logits_.reset();
}

std::shared_ptr<tensor::Buffer> OutputHead::logits_memory(const tensor::Exec& exec, const std::string& owner,
                                                          int64_t bytes) {
  if (bytes > kMostRecordedLogitBytes || bytes == 0) return nullptr;
  if (logits_ == nullptr || logits_->bytes() < bytes || logits_.use_count() > 1) {
    const tensor::MemoryScope tagged(owner);
    logits_.reset();
    logits_ = std::make_shared<tensor::Buffer>(bytes, *exec.device);
  }
  return logits_;
}

LogProbResult OutputHead::log_probs(const tensor::Exec& exec, Weights& weights, const LogProbRequest& request) {
  const HeadArgs on_device = head_args(exec, weights, vocabulary(), request);
  const tensor::LogProbHead& args = on_device.head;
  const std::string owner = weights.options().tag + "/logits";
  const int64_t all_logits = args.rows * args.head->n * static_cast<int64_t>(sizeof(float));
  const auto kept = request.record ? logits_memory(exec, owner, all_logits) : nullptr;
  if (vocabulary().cut == 0) {
    if (request.top_count > 0) return most_likely_of_parts(exec, weights.tensor(), args, request, kept);
    return log_probs_of_parts(exec, weights.tensor(), args, request, kept);
  }
  LogProbResult result;
  result.log_probs = empty_result(exec, {args.rows});
  result.argmax = empty_result(exec, {args.rows}, at::kInt);
  if (request.entropy) result.entropy = empty_result(exec, {args.rows});
  make_listed(exec, request, result);
  tensor::LogProbOutput out;
  out.log_prob = device_data(result.log_probs);
  out.argmax = device_data<int32_t>(result.argmax);
  out.entropy = request.entropy ? device_data(result.entropy) : nullptr;
  result.top.resize(static_cast<size_t>(args.rows * request.top_count));
  const tensor::Buffer top(static_cast<int64_t>(result.top.size() * sizeof(tensor::TokenLogProb)), *exec.device);
  if (request.top_count > 0)
    out.top = static_cast<tensor::TokenLogProb*>(top.data()), out.top_count = request.top_count;
  if (request.record) {
    const tensor::MemoryScope tagged(owner);
    result.record = {empty_result(exec, {2, args.rows}), result.entropy, kept, result.listed_ids, result.rest};
    out.max = device_data(result.record.normalizers);
    out.log_sum = out.max + args.rows;
    out.logits = kept == nullptr ? nullptr : kept->floats();
  }
  if (request.listed_count > 0) {
    out.listed = {request.listed_count, device_data<int32_t>(result.listed_ids)};
    if (request.listed_ids.empty()) out.likely = device_data<int32_t>(result.listed_ids), out.listed.ids = nullptr;
    out.listed_log_prob = device_data(result.listed);
    out.rest = device_data(result.rest);
  }
  tensor::log_softmax_gather(exec, args, out);
  tensor::copy_out(exec, top.data(), top.bytes(), result.top.data());
  return result;
}

at::Tensor OutputHead::log_probs_backward(const tensor::Exec& exec, Weights& weights, const LogProbRequest& request,
                                          const LogProbGradients& gradients, const LogProbRecord& record) const {
  const Linear& head = vocabulary();
  const HeadArgs on_device = head_args(exec, weights, head, request);
  const tensor::LogProbHead& args = on_device.head;
  if (args.rows == 0) return empty_result(exec, {0, head.in});  // a context rank may have none
  if (head.cut == 0 && !record.normalizers.defined()) {
    LogProbRequest again = request;
    again.entropy = gradients.entropy.defined();
    const LogProbRecord made = log_probs_of_parts(exec, weights.tensor(), args, again, nullptr).record;
    return log_probs_backward(exec, weights, request, gradients, made);
  }
  const int64_t width = head.in;
  at::Tensor hidden_gradient = empty_result(exec, {args.rows, width});
  tensor::LogProbGrad grad;
  const at::Tensor log_prob_part = dense(gradients.log_probs, args.rows),
                   entropy_part = dense(gradients.entropy, args.rows),
                   listed_part = dense(gradients.listed, args.rows * request.listed_count),
                   rest_part = dense(gradients.rest, args.rows);
  grad.dlog_prob = device_data(log_prob_part);
  grad.dentropy = device_data(entropy_part);
  if (listed_part.defined()) {
    COLLIMATE_CHECK(record.rest.defined() && rest_part.defined(), "no record of the listed tokens");
    grad.listed = {{request.listed_count, device_data<int32_t>(record.listed_ids)},
                   device_data(listed_part),
                   device_data(rest_part),
                   device_data(record.rest)};
  }
  grad.w = weights.param(head.weight);
  grad.dhidden = device_data(hidden_gradient);
  grad.dhidden_stride = width;
  grad.dw = weights.param_gradient(head.weight);
  grad.dbias = head.bias < 0 ? nullptr : weights.param_gradient(head.bias);
  tensor::LogProbForward forward;
  if (record.normalizers.defined()) {
    COLLIMATE_CHECK(record.normalizers.size(1) == args.rows, "a record of {} rows", record.normalizers.size(1));
    forward.max = device_data(record.normalizers);
    forward.log_sum = forward.max + args.rows;
    forward.entropy = device_data(record.entropy);
    forward.logits = record.logits == nullptr ? nullptr : record.logits->floats();
  }
  tensor::log_softmax_gather_backward(exec, args, grad, forward);
  if (head.cut == 0) weights.tensor().sum(exec, device_data(hidden_gradient), args.rows * width);
  return hidden_gradient;
}

at::Tensor OutputHead::logits(const tensor::Exec& exec, Weights& weights, const at::Tensor& hidden) const {
  const Linear& head = vocabulary();
  const Rows in = rows_of(hidden, head.in);
  at::Tensor out = empty_result(exec, {in.rows, head.out});
  tensor::linear(exec, in.data, in.stride, in.rows, weights.panels(head.weight), device_data(out), head.out,
                 {.bias = bias_of(weights, head)});
  if (head.cut == 0) out = join_parts(exec, weights, head, out);
  if (const auto cap = static_cast<float>(weights.shape().logit_softcap); cap > 0)
    tensor::soft_cap(exec, cap, in.rows, out.size(1), device_data(out));
  return out;
}

at::Tensor OutputHead::scores(const tensor::Exec& exec, Weights& weights, const at::Tensor& hidden) const {
  const Rows in = rows_of(hidden, score().in);
  at::Tensor out = empty_result(exec, {in.rows});
  tensor::linear(exec, in.data, in.stride, in.rows, weights.panels(score().weight), device_data(out), 1);
  return out;
}

at::Tensor OutputHead::scores_backward(const tensor::Exec& exec, Weights& weights, const at::Tensor& hidden,
                                       const at::Tensor& score_gradient) const {
  const int head = score().weight;
  const int64_t width = score().in;
  const Rows in = rows_of(hidden, width);
  const at::Tensor score_part = dense(score_gradient, in.rows);
  const float* dy = device_data(score_part);
  at::Tensor hidden_gradient = empty_result(exec, {in.rows, width});
  const tensor::ComputeType type = weights.options().compute;
  tensor::linear_grad_input(exec, type, dy, 1, in.rows, weights.param(head), 1, width, device_data(hidden_gradient),
                            width);
  if (float* dw = weights.param_gradient(head); dw != nullptr)
    tensor::linear_grad_weight(exec, type, dy, 1, in.data, in.stride, in.rows, 1, width, dw);
  return hidden_gradient;
}

}  // namespace collimate::model
