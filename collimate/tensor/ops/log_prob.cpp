#include "collimate/tensor/ops/log_prob.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "collimate/base/error.h"
#include "collimate/base/fault.h"
#include "collimate/tensor/kernels/gemm.h"
#include "collimate/tensor/kernels/grain.h"
#include "collimate/tensor/kernels/scratch.h"
#include "collimate/tensor/kernels/softmax.h"
#include "collimate/tensor/operations.h"
#include "collimate/tensor/scratch_need.h"

namespace collimate::tensor {
namespace {

constexpr int64_t kLogitFloats = int64_t{1} << 22;  // logits of one block of rows: 16 MiB

int64_t rows_per_block(int64_t vocab) { return std::clamp<int64_t>(kLogitFloats / vocab / 14 * 14, 14, 504); }

void check_targets(const LogProbHead& h) {
  for (int64_t r = 0; r < h.rows; ++r) {
    if (h.targets[r] < 0 || h.targets[r] >= h.vocabulary()) {
      throw base::InputError(base::expectation("log_prob", "targets in [0, " + std::to_string(h.vocabulary()) + ")",
                                               std::to_string(h.targets[r]), "the tokenizer of this model"));
    }
  }
}

void cap_row(float cap, int64_t width, float* x) {
  softmax_kernels().soft_cap(cap, width, x);
  base::fault_rows("soft_cap", x, 1, width, width);
}

// Writes logits / temperature of rows [row, row + rows) to `logits`, or to scratch where it is null, then calls
// visit(row, its logits) in parallel.
template <typename Visit>
void visit_block(const Exec& exec, const LogProbHead& h, int64_t row, int64_t rows, float* logits, const Visit& visit) {
  const int64_t vocab = h.head->n;
  if (logits == nullptr) logits = scratch(ScratchSlot::kLogits, rows * vocab);
  cpu::linear(exec, h.hidden + row * h.hidden_stride, h.hidden_stride, rows, *h.head, logits, vocab, {h.bias, false});
  const float factor = inverse_temperature(h.temperature);
  exec.parallel_for(rows, row_grain(4 * vocab), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      float* x = logits + r * vocab;
      if (h.softcap > 0) cap_row(h.softcap, vocab, x);
      if (factor != 1.0F) scale_logits(x, vocab, factor, x);
      visit(row + r, x);
    }
  });
}

void write_listed(const LogProbOutput& out, int64_t row, const RowNormalizer& norm, float* x, int64_t vocab) {
  ListedTokens listed = out.listed;
  if (out.likely != nullptr) {
    largest_ids(x, vocab, 0, listed.count, out.likely + row * listed.count);
    listed.ids = out.likely;
  }
  const int32_t* ids = listed.ids + row * listed.count;
  float* log_probs = out.listed_log_prob + row * listed.count;
  for (int64_t k = 0; k < listed.count; ++k) log_probs[k] = norm.log_prob(x[ids[k]]);
  std::array<float, shape::kVocabChunks> sums{};
  add_rest_sums(listed, row, x, {0, vocab, vocab}, norm.max, sums.data());
  out.rest[row] = rest_of_sums(norm.log_sum, sums.data());
}

void write_outputs(const LogProbHead& h, const LogProbOutput& out, int64_t row, float* x) {
  const int64_t vocab = h.head->n;
  const RowNormalizer norm = row_normalizer(x, vocab);
  if (out.log_prob != nullptr) out.log_prob[row] = base::fault_value("log_prob", norm.log_prob(x[h.targets[row]]));
  if (out.logsumexp != nullptr) out.logsumexp[row] = norm.logsumexp();
  if (out.entropy != nullptr) out.entropy[row] = softmax_kernels().entropy(x, vocab, norm.max, norm.log_sum);
  if (out.argmax != nullptr) out.argmax[row] = static_cast<int32_t>(std::find(x, x + vocab, norm.max) - x);
  if (out.top != nullptr) top_log_probs(x, vocab, norm, out.top_count, out.top + row * out.top_count);
  if (out.listed_log_prob != nullptr) write_listed(out, row, norm, x, vocab);
  if (out.max != nullptr) out.max[row] = norm.max, out.log_sum[row] = norm.log_sum;
}

// A VocabularyPart is one piece of the vocabulary, with its logits that become gradients.
struct VocabularyPart {
  int64_t first, width;
  float* d;  // [rows, width]
};

// Writes d logits of one piece, from the kept logits or from logits that forward's kernels compute again.
void part_gradient(const Exec& exec, const LogProbHead& h, const LogProbGrad& grad, const LogProbForward& f,
                   const VocabularyPart& part) {
  const float factor = inverse_temperature(h.temperature);
  if (f.logits == nullptr) {
    const LinearPanels panels = panel_range(*h.head, part.first, part.width);
    cpu::linear(exec, h.hidden, h.hidden_stride, h.rows, panels, part.d, part.width,
                {h.bias == nullptr ? nullptr : h.bias + part.first, false});
  }
  exec.parallel_for(h.rows, row_grain(4 * part.width), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      float* d = part.d + r * part.width;
      if (f.logits == nullptr && h.softcap > 0) cap_row(h.softcap, part.width, d);
      if (f.logits == nullptr && factor != 1.0F) scale_logits(d, part.width, factor, d);
      SoftmaxGradient g;
      g.logits = f.logits == nullptr ? d : f.logits + r * h.head->n + part.first;
      g.out = d;
      g.vocab = part.width;
      g.max = f.max[r], g.log_sum = f.log_sum[r];
      g.target = h.targets[r] - h.first - part.first;
      g.dlog_prob = grad.dlog_prob[r];
      g.factor = factor;
      g.softcap = h.softcap;
      if (grad.dentropy != nullptr) g.dentropy = grad.dentropy[r], g.entropy = f.entropy[r];
      if (grad.listed.tokens.count > 0)
        listed_gradient(grad.listed, r, h.first + part.first, g);
      else
        softmax_kernels().gradient(g);
    }
  });
}

// Returns the width of a piece: whole panels and, where there are several pieces, a multiple of kDepthBlock.
int64_t part_width(int64_t rows, int64_t vocab) {
  const int64_t width = std::max<int64_t>(1, kLogitFloats / rows / kDepthBlock) * kDepthBlock;
  return std::min(width, vocab);
}

}  // namespace

int64_t log_prob_scratch_bytes(int64_t vocab) {
  return rows_per_block(vocab) * vocab * static_cast<int64_t>(sizeof(float));
}

void add_log_prob_scratch(const LinearSize& head, ScratchNeed& need) {
  LinearSize block = head;
  block.rows = std::min(head.rows, rows_per_block(head.n));
  need.in_caller(ScratchSlot::kLogits,
                 std::min(head.rows * head.n, log_prob_scratch_bytes(head.n) / static_cast<int64_t>(sizeof(float))));
  add_linear_scratch(block, need);
}

void add_log_prob_backward_scratch(const LinearSize& head, ScratchNeed& need) {
  if (head.rows == 0) return;
  add_log_prob_scratch(head, need);
  // Fewer rows have wider pieces, so that they may take more than all rows do.
  need.in_caller(ScratchSlot::kLogits, std::min(head.rows * head.n, std::max(kLogitFloats, head.rows * kDepthBlock)));
  add_linear_scratch(head, need);
  add_linear_backward_scratch(head, need);
}

RowNormalizer row_normalizer(const float* logits, int64_t vocab, float* weights) {
  RowNormalizer norm;
  softmax_kernels().normalizer(logits, vocab, &norm.max, &norm.log_sum, weights);
  norm.log_sum = base::fault_value("log_softmax", norm.log_sum);
  return norm;
}

void top_log_probs(const float* logits, int64_t vocab, const RowNormalizer& norm, int64_t count, TokenLogProb* out) {
  COLLIMATE_CHECK(count <= vocab, "the {} most likely of {} tokens", count, vocab);
  RunningTopK top(count);
  top.add(logits, 0, vocab);
  for (int64_t rank = 0; rank < count; ++rank) out[rank] = {top.id(rank), norm.log_prob(top.value(rank))};
}

float inverse_temperature(float temperature) { return temperature == 0.0F ? 1.0F : 1.0F / temperature; }

void scale_logits(const float* logits, int64_t vocab, float factor, float* out) {
  if (factor == 1.0F) {
    if (out != logits) std::memcpy(out, logits, static_cast<size_t>(vocab) * sizeof(float));
  } else {
    softmax_kernels().scale(logits, vocab, factor, out);
    base::fault_rows("scale_logits", out, 1, vocab, vocab);
  }
}

void cpu::soft_cap(const Exec& exec, float cap, int64_t rows, int64_t vocab, float* x) {
  exec.parallel_for(rows, row_grain(4 * vocab), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) cap_row(cap, vocab, x + r * vocab);
  });
}

void cpu::log_softmax_gather(const Exec& exec, const LogProbHead& head, const LogProbOutput& out) {
  COLLIMATE_CHECK(head.head != nullptr && (out.log_prob == nullptr || head.targets != nullptr));
  if (out.log_prob != nullptr) check_targets(head);
  if (out.listed.ids != nullptr) check_listed(out.listed, head.rows, head.vocabulary());
  const int64_t vocab = head.head->n;
  const int64_t step = rows_per_block(vocab);
  for (int64_t row = 0; row < head.rows; row += step) {
    float* logits = out.logits == nullptr ? nullptr : out.logits + row * vocab;
    visit_block(exec, head, row, std::min(step, head.rows - row), logits,
                [&](int64_t r, float* x) { write_outputs(head, out, r, x); });
  }
}

void cpu::part_logits(const Exec& exec, const LogProbHead& head, const PartLogits& out) {
  check_targets(head);
  const int64_t n = head.head->n;
  visit_block(exec, head, 0, head.rows, out.logits, [&](int64_t r, const float* x) {
    out.max[r] = softmax_kernels().part_max(x, n);
    out.argmax[r] = static_cast<int32_t>(head.first + (std::find(x, x + n, out.max[r]) - x));
    const int64_t target = head.targets[r] - head.first;
    out.target[r] = target >= 0 && target < n ? x[target] : 0.0F;
  });
}

void cpu::part_sums(const Exec& exec, const LogProbHead& head, const float* logits, const float* max,
                    const float* log_sum, float* sums) {
  const VocabularyRange range{head.first, head.head->n, head.vocabulary()};
  std::fill_n(sums, head.rows * shape::kVocabChunks, 0.0F);
  exec.parallel_for(head.rows, row_grain(4 * range.count), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      softmax_kernels().part_sums(logits + r * range.count, range, max[r], log_sum == nullptr ? nullptr : log_sum + r,
                                  sums + r * shape::kVocabChunks);
  });
}

RowNormalizer normalizer_of_sums(float max, float* sums) {
  return {max, base::fault_value("log_softmax", softmax_kernels().log(sum_of_vocab_chunks(sums)))};
}

float entropy_of_sums(float log_sum, float* sums) { return log_sum - sum_of_vocab_chunks(sums); }

void cpu::log_softmax_gather_backward(const Exec& exec, const LogProbHead& head, const LogProbGrad& grad,
                                      const LogProbForward& forward) {
  COLLIMATE_CHECK(head.head != nullptr && grad.dlog_prob != nullptr && (grad.dhidden == nullptr || grad.w != nullptr));
  COLLIMATE_CHECK(grad.dbias == nullptr || grad.dw != nullptr);
  check_targets(head);
  if (head.rows == 0) return;
  LogProbForward f = forward;
  std::vector<float> again;
  if (f.max == nullptr || (grad.dentropy != nullptr && f.entropy == nullptr)) {
    COLLIMATE_CHECK(head.vocabulary() == head.head->n, "a part of the vocabulary has no normaliser");
    again.resize(static_cast<size_t>(3 * head.rows));
    float* norms = again.data();
    cpu::log_softmax_gather(exec, head, {.entropy = norms + 2 * head.rows, .max = norms, .log_sum = norms + head.rows});
    f.max = norms, f.log_sum = norms + head.rows, f.entropy = norms + 2 * head.rows;
  }
  const int64_t vocab = head.head->n, width = head.head->k, step = part_width(head.rows, vocab);
  float* d = scratch(ScratchSlot::kLogits, head.rows * step);
  for (int64_t first = 0; first < vocab; first += step) {
    const VocabularyPart part{first, std::min(step, vocab - first), d};
    part_gradient(exec, head, grad, f, part);
    if (grad.dhidden != nullptr)
      cpu::linear_grad_input(exec, head.head->type, d, part.width, head.rows, grad.w + first * width, part.width, width,
                             grad.dhidden, grad.dhidden_stride, grad.accumulate || first > 0);
    if (grad.dw != nullptr)
      cpu::linear_grad_weight(exec, head.head->type, d, part.width, head.hidden, head.hidden_stride, head.rows,
                              part.width, width, grad.dw + first * width,
                              grad.dbias == nullptr ? nullptr : grad.dbias + first);
  }
}

void soft_cap(const Exec& exec, float cap, int64_t rows, int64_t vocab, float* x) {
  exec.operations().soft_cap(exec, cap, rows, vocab, x);
}

void log_softmax_gather(const Exec& exec, const LogProbHead& head, const LogProbOutput& out) {
  exec.operations().log_softmax_gather(exec, head, out);
}

void log_softmax_gather_backward(const Exec& exec, const LogProbHead& head, const LogProbGrad& grad,
                                 const LogProbForward& forward) {
  exec.operations().log_softmax_gather_backward(exec, head, grad, forward);
}

void part_logits(const Exec& exec, const LogProbHead& head, const PartLogits& out) {
  exec.operations().part_logits(exec, head, out);
}

void part_sums(const Exec& exec, const LogProbHead& head, const float* logits, const float* max, const float* log_sum,
               float* sums) {
  exec.operations().part_sums(exec, head, logits, max, log_sum, sums);
}

}  // namespace collimate::tensor
