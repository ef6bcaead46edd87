#include "collimate/tensor/ops/sample.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/base/fault.h"
#include "collimate/tensor/kernels/scratch.h"
#include "collimate/tensor/kernels/softmax.h"
#include "collimate/tensor/operations.h"
#include "collimate/tensor/ops/log_prob.h"
#include "collimate/tensor/ops/truncation.h"
#include "collimate/tensor/scratch_need.h"

namespace collimate::tensor {
namespace {

// Returns the first of tokens [begin, end) at which the sum of weights exceeds goal, else the last with a positive
// weight.
int32_t walk_block(const float* e, int64_t begin, int64_t end, double goal) {
  double sum = 0;
  int64_t last = begin;
  for (int64_t i = begin; i < end; ++i) {
    if (e[i] <= 0.0F) continue;
    last = i;
    sum += e[i];
    if (sum > goal) break;
  }
  return static_cast<int32_t>(last);
}

// Returns the first token, in id order, at which the running sum of weights exceeds u times the total. The sums are
// double, first over the sums of blocks of 128, then within one block.
int32_t inverse_cdf(const float* e, int64_t vocab, float u) {
  const int64_t blocks = (vocab + kCdfBlock - 1) / kCdfBlock;
  float* sums = scratch(ScratchSlot::kSum, blocks);
  softmax_kernels().block_sums(e, vocab, sums);
  double total = 0;
  for (int64_t b = 0; b < blocks; ++b) total += sums[b];
  const double goal = static_cast<double>(u) * total;
  double sum = 0;
  int64_t chosen = 0;  // the block in which the goal is reached; if rounding hides it, the last block with any weight
  for (int64_t b = 0; b < blocks; ++b) {
    if (sums[b] <= 0.0F) continue;
    chosen = b;
    if (sum + sums[b] > goal) break;
    sum += sums[b];
  }
  return walk_block(e, chosen * kCdfBlock, std::min(vocab, (chosen + 1) * kCdfBlock), goal - sum);
}

// A TemperedRow holds logits / temperature and their normaliser.
struct TemperedRow {
  const float* x = nullptr;  // the logits themselves where the factor is 1, else `scaled`
  RowNormalizer norm;
};

// Divides a row by the temperature and normalises it. `weights` [vocab] may be null, as in row_normalizer. Throws
// GuardError where the normaliser is not finite.
TemperedRow temper(const float* logits, int64_t vocab, float temperature, float* scaled, float* weights) {
  const float factor = inverse_temperature(temperature);
  if (factor != 1.0F) scale_logits(logits, vocab, factor, scaled);
  TemperedRow row{factor == 1.0F ? logits : scaled, {}};
  row.norm = row_normalizer(row.x, vocab, weights);
  if (!std::isfinite(row.norm.max) || !std::isfinite(row.norm.log_sum)) {
    throw base::GuardError(base::expectation("sample", "finite logits", "a row with NaN or infinity",
                                             "a lower learning rate, or check the weights"));
  }
  return row;
}

}  // namespace

Sampled sample_row(const float* logits, int64_t vocab, const SampleOptions& options, float u) {
  float* e = scratch(ScratchSlot::kLogits, 2 * vocab);
  const auto [x, norm] =
      temper(logits, vocab, options.temperature, e + vocab, options.temperature == 0.0F ? nullptr : e);
  int32_t token = 0;
  if (options.temperature == 0.0F) {
    token = static_cast<int32_t>(std::find(x, x + vocab, norm.max) - x);
  } else {
    truncate_weights(options, x, vocab, norm.max, e);
    token = inverse_cdf(e, vocab, u);
  }
  return {token, base::fault_value("sample", norm.log_prob(x[token]))};
}

float row_log_prob(const float* logits, int64_t vocab, float temperature, int32_t token) {
  const TemperedRow row = temper(logits, vocab, temperature, scratch(ScratchSlot::kLogits, vocab), nullptr);
  return base::fault_value("sample", row.norm.log_prob(row.x[token]));
}

void row_top_log_probs(const float* logits, int64_t vocab, float temperature, int64_t count, TokenLogProb* out) {
  const TemperedRow row = temper(logits, vocab, temperature, scratch(ScratchSlot::kLogits, vocab), nullptr);
  top_log_probs(row.x, vocab, row.norm, count, out);
}

void forbid_others(std::span<const uint32_t> allowed, std::span<float> logits) {
  for (size_t i = 0; i < logits.size(); ++i) {
    const bool has = i / 32 < allowed.size() && (base::at(allowed, i / 32) >> (i % 32) & 1U) != 0;
    if (!has) base::at(logits, i) = -std::numeric_limits<float>::infinity();
  }
}

void edit_logits(std::span<const LogitEdit> edits, std::span<float> logits) {
  for (const LogitEdit& edit : edits) {
    if (edit.id < 0 || static_cast<size_t>(edit.id) >= logits.size()) continue;
    float& logit = base::at(logits, edit.id);
    const double x = logit;
    switch (edit.kind) {
      case LogitEdit::Kind::kForbid:
        logit = -std::numeric_limits<float>::infinity();
        break;
      case LogitEdit::Kind::kSubtract:
        logit = static_cast<float>(x - edit.a - edit.b);
        break;
      case LogitEdit::Kind::kPenalize:
        logit = static_cast<float>(x > 0 ? x / edit.a : x * edit.a);
        break;
    }
  }
}

namespace {

void edit_row(const Draw& draw, std::span<float> row) {
  edit_logits(draw.edits, row);
  if (!draw.allowed.empty()) forbid_others(draw.allowed, row);
}

// Applies the edits to log-probs, which are not normalised again, and lists the tokens with the largest results.
void score_top(int64_t vocab, const Draw& draw) {
  float* log_probs = scratch(ScratchSlot::kLogits, 2 * vocab);
  const TemperedRow row = temper(draw.logits, vocab, draw.options.temperature, log_probs + vocab, nullptr);
  for (int64_t i = 0; i < vocab; ++i) log_probs[i] = row.norm.log_prob(row.x[i]);
  edit_row(draw, {log_probs, static_cast<size_t>(vocab)});
  RunningTopK top(static_cast<int64_t>(draw.top.size()));
  top.add(log_probs, 0, vocab);
  for (size_t rank = 0; rank < draw.top.size(); ++rank) {
    const int32_t token = top.id(static_cast<int64_t>(rank));
    base::at(draw.top, rank) = {token, row.norm.log_prob(row.x[token])};
    base::at(draw.scores, rank) = top.value(static_cast<int64_t>(rank));
  }
}

void list_top(int64_t vocab, const Draw& draw) {
  if (draw.top.empty()) return;
  if (!draw.scores.empty() && !(draw.edits.empty() && draw.allowed.empty())) return score_top(vocab, draw);
  row_top_log_probs(draw.logits, vocab, draw.options.temperature, static_cast<int64_t>(draw.top.size()),
                    draw.top.data());
  for (size_t rank = 0; rank < draw.scores.size(); ++rank)
    base::at(draw.scores, rank) = base::at(draw.top, rank).log_prob;
}

void draw_row(int64_t vocab, const Draw& draw) {
  if (draw.edits.empty() && draw.allowed.empty()) {
    *draw.out = sample_row(draw.logits, vocab, draw.options, draw.u);
  } else {
    float* edited = scratch(ScratchSlot::kCaller, vocab);
    std::copy_n(draw.logits, vocab, edited);
    const std::span<float> row(edited, static_cast<size_t>(vocab));
    edit_row(draw, row);
    const int32_t token = sample_row(edited, vocab, draw.options, draw.u).token;
    *draw.out = {token, row_log_prob(draw.logits, vocab, draw.options.temperature, token)};
  }
  list_top(vocab, draw);
}

}  // namespace

void add_draw_scratch(int64_t vocab, ScratchNeed& need) {
  need.in_each(ScratchSlot::kLogits, 2 * vocab);
  need.in_each(ScratchSlot::kCaller, vocab);
  need.in_each(ScratchSlot::kSum, (vocab + kCdfBlock - 1) / kCdfBlock);
}

void cpu::draw_rows(const Exec& exec, int64_t vocab, std::span<const Draw> draws) {
  exec.parallel_for(static_cast<int64_t>(draws.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) draw_row(vocab, base::at(draws, i));
  });
}

void draw_rows(const Exec& exec, int64_t vocab, std::span<const Draw> draws) {
  exec.operations().draw_rows(exec, vocab, draws);
}

}  // namespace collimate::tensor
