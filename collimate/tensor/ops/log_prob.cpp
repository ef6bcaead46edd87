#include "collimate/tensor/ops/log_prob.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "collimate/base/error.h"
#include "collimate/tensor/kernels/pick.h"
#include "collimate/tensor/kernels/scratch.h"
#include "collimate/tensor/kernels/softmax.h"

namespace collimate::tensor {
namespace {

constexpr int64_t kLogitFloats = int64_t{1} << 22;  // of one block of rows: 16 MiB

const SoftmaxKernels& kernels() { return pick(avx2::kSoftmax, avx512::kSoftmax); }

int64_t rows_per_block(int64_t vocab) { return std::clamp<int64_t>(kLogitFloats / vocab / 14 * 14, 14, 504); }

void check_targets(const LogProbHead& h) {
  for (int64_t r = 0; r < h.rows; ++r) {
    if (h.targets[r] < 0 || h.targets[r] >= h.head->n) {
      throw base::InputError(base::expectation("log_prob", "targets in [0, " + std::to_string(h.head->n) + ")",
                                               std::to_string(h.targets[r]), "the tokenizer of this model"));
    }
  }
}

// logits / temperature of rows [row, row + rows) into scratch, then visit(row, its logits) in parallel.
template <typename Visit>
float* visit_block(const Exec& exec, const LogProbHead& h, int64_t row, int64_t rows, const Visit& visit) {
  const int64_t vocab = h.head->n;
  float* logits = scratch(ScratchSlot::kLogits, rows * vocab);
  linear(exec, h.hidden + row * h.hidden_stride, h.hidden_stride, rows, *h.head, logits, vocab, {h.bias, false});
  const float factor = inverse_temperature(h.temperature);
  exec.parallel_for(rows, row_grain(4 * vocab), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      float* x = logits + r * vocab;
      if (factor != 1.0F) scale_logits(x, vocab, factor, x);
      visit(row + r, x);
    }
  });
  return logits;
}

template <typename Body>
void for_each_block(const LogProbHead& h, const Body& body) {
  const int64_t step = rows_per_block(h.head->n);
  for (int64_t row = 0; row < h.rows; row += step) body(row, std::min(step, h.rows - row));
}

void write_outputs(const LogProbHead& h, const LogProbOutput& out, int64_t row, const float* x) {
  const int64_t vocab = h.head->n;
  const RowNormalizer norm = row_normalizer(x, vocab);
  if (out.log_prob != nullptr) out.log_prob[row] = norm.log_prob(x[h.targets[row]]);
  if (out.logsumexp != nullptr) out.logsumexp[row] = norm.logsumexp();
  if (out.entropy != nullptr) out.entropy[row] = kernels().entropy(x, vocab, norm.max, norm.log_sum);
  if (out.argmax != nullptr) out.argmax[row] = static_cast<int32_t>(std::find(x, x + vocab, norm.max) - x);
}

void to_gradient(const LogProbHead& h, const LogProbGrad& grad, int64_t row, float* x) {
  const RowNormalizer norm = row_normalizer(x, h.head->n);
  SoftmaxGradient g;
  g.row = x;
  g.vocab = h.head->n;
  g.max = norm.max;
  g.log_sum = norm.log_sum;
  g.target = h.targets[row];
  g.dlog_prob = grad.dlog_prob[row];
  g.factor = inverse_temperature(h.temperature);
  if (grad.dentropy != nullptr && grad.dentropy[row] != 0.0F) {
    g.dentropy = grad.dentropy[row];
    g.entropy = kernels().entropy(x, g.vocab, norm.max, norm.log_sum);
  }
  kernels().gradient(g);
}

}  // namespace

int64_t log_prob_scratch_bytes(int64_t vocab) {
  return rows_per_block(vocab) * vocab * static_cast<int64_t>(sizeof(float));
}

RowNormalizer row_normalizer(const float* logits, int64_t vocab) {
  RowNormalizer norm;
  kernels().normalizer(logits, vocab, &norm.max, &norm.log_sum);
  return norm;
}

float inverse_temperature(float temperature) { return temperature == 0.0F ? 1.0F : 1.0F / temperature; }

void scale_logits(const float* logits, int64_t vocab, float factor, float* out) {
  if (factor == 1.0F) {
    if (out != logits) std::memcpy(out, logits, static_cast<size_t>(vocab) * sizeof(float));
  } else {
    kernels().scale(logits, vocab, factor, out);
  }
}

void log_softmax_gather(const Exec& exec, const LogProbHead& head, const LogProbOutput& out) {
  COLLIMATE_CHECK(head.head != nullptr && (out.log_prob == nullptr || head.targets != nullptr));
  if (out.log_prob != nullptr) check_targets(head);
  for_each_block(head, [&](int64_t row, int64_t rows) {
    visit_block(exec, head, row, rows, [&](int64_t r, const float* x) { write_outputs(head, out, r, x); });
  });
}

void log_softmax_gather_backward(const Exec& exec, const LogProbHead& head, const LogProbGrad& grad) {
  COLLIMATE_CHECK(head.head != nullptr && grad.dlog_prob != nullptr && (grad.dhidden == nullptr || grad.w != nullptr));
  COLLIMATE_CHECK(grad.dbias == nullptr || grad.dw != nullptr);
  check_targets(head);
  const int64_t vocab = head.head->n;
  const int64_t width = head.head->k;
  for_each_block(head, [&](int64_t row, int64_t rows) {
    const float* d = visit_block(exec, head, row, rows, [&](int64_t r, float* x) { to_gradient(head, grad, r, x); });
    if (grad.dhidden != nullptr) {
      linear_grad_input(exec, d, vocab, rows, grad.w, vocab, width, grad.dhidden + row * grad.dhidden_stride,
                        grad.dhidden_stride, grad.accumulate);
    }
    if (grad.dw != nullptr) {
      linear_grad_weight(exec, d, vocab, head.hidden + row * head.hidden_stride, head.hidden_stride, rows, vocab, width,
                         grad.dw, grad.dbias);
    }
  });
}

}  // namespace collimate::tensor
