#include "collimate/tensor/ops/sample.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "collimate/base/error.h"
#include "collimate/tensor/kernels/pick.h"
#include "collimate/tensor/kernels/scratch.h"
#include "collimate/tensor/kernels/softmax.h"
#include "collimate/tensor/ops/log_prob.h"

namespace collimate::tensor {
namespace {

const SoftmaxKernels& kernels() { return pick(avx2::kSoftmax, avx512::kSoftmax); }

// Token ids by rank. Only the first `sorted` are in order; more are sorted when asked for.
class Ranking {
 public:
  Ranking(const float* x, int64_t vocab, int64_t keep) : x_(x), ids_(static_cast<size_t>(vocab)) {
    std::iota(ids_.begin(), ids_.end(), 0);
    if (keep < vocab) {
      std::nth_element(ids_.begin(), ids_.begin() + keep, ids_.end(),
                       [this](int32_t a, int32_t b) { return above(a, b); });
      ids_.resize(static_cast<size_t>(keep));
    }
  }

  int64_t size() const { return static_cast<int64_t>(ids_.size()); }
  void cut(int64_t count) { ids_.resize(static_cast<size_t>(count)); }
  const std::vector<int32_t>& ids() const { return ids_; }

  int32_t at(int64_t rank) {
    while (rank >= sorted_) {
      const int64_t next = std::min(size(), std::max<int64_t>(64, sorted_ * 8));
      std::partial_sort(ids_.begin() + sorted_, ids_.begin() + next, ids_.end(),
                        [this](int32_t a, int32_t b) { return above(a, b); });
      sorted_ = next;
    }
    return ids_[static_cast<size_t>(rank)];
  }

 private:
  bool above(int32_t a, int32_t b) const { return x_[a] > x_[b] || (x_[a] == x_[b] && a < b); }

  const float* x_;
  std::vector<int32_t> ids_;
  int64_t sorted_ = 0;
};

// How many of the ranked tokens it takes to reach top_p of their mass; at least one.
int64_t reach(Ranking& ranking, const float* e, float top_p) {
  std::vector<int32_t> in_order = ranking.ids();
  std::sort(in_order.begin(), in_order.end());
  double mass = 0;
  for (const int32_t id : in_order) mass += e[id];
  double sum = 0;
  for (int64_t rank = 0; rank < ranking.size(); ++rank) {
    sum += e[ranking.at(rank)];
    if (sum >= static_cast<double>(top_p) * mass) return rank + 1;
  }
  return ranking.size();
}

// Weights of tokens that truncation drops become zero. e[most likely] is 1.
void truncate(const float* x, int64_t vocab, const SampleOptions& options, float* e) {
  const bool by_rank = (options.top_k > 0 && options.top_k < vocab) || options.top_p < 1.0F;
  if (by_rank) {
    Ranking ranking(x, vocab, options.top_k > 0 ? std::min<int64_t>(options.top_k, vocab) : vocab);
    if (options.top_p < 1.0F) ranking.cut(reach(ranking, e, options.top_p));
    std::vector<float> kept;
    for (const int32_t id : ranking.ids()) kept.push_back(e[id]);
    std::fill(e, e + vocab, 0.0F);
    for (size_t i = 0; i < kept.size(); ++i) e[ranking.ids()[i]] = kept[i];
  }
  if (options.min_p > 0.0F) {
    for (int64_t i = 0; i < vocab; ++i) e[i] = e[i] >= options.min_p ? e[i] : 0.0F;
  }
}

// The first of tokens [begin, end) where the sum of weights exceeds goal, else the last of positive weight.
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

// The first token, in id order, at which the running sum of weights exceeds u times the total. Sums in double, over
// blocks of 128 first.
int32_t inverse_cdf(const float* e, int64_t vocab, float u) {
  const int64_t blocks = (vocab + kCdfBlock - 1) / kCdfBlock;
  float* sums = scratch(ScratchSlot::kSum, blocks);
  kernels().block_sums(e, vocab, sums);
  double total = 0;
  for (int64_t b = 0; b < blocks; ++b) total += sums[b];
  const double goal = static_cast<double>(u) * total;
  double sum = 0;
  int64_t chosen = 0;  // the block that holds the goal; by rounding, perhaps the last one with any weight
  for (int64_t b = 0; b < blocks; ++b) {
    if (sums[b] <= 0.0F) continue;
    chosen = b;
    if (sum + sums[b] > goal) break;
    sum += sums[b];
  }
  return walk_block(e, chosen * kCdfBlock, std::min(vocab, (chosen + 1) * kCdfBlock), goal - sum);
}

}  // namespace

Sampled sample_row(const float* logits, int64_t vocab, const SampleOptions& options, float u) {
  float* x = scratch(ScratchSlot::kLogits, 2 * vocab);
  float* e = x + vocab;
  scale_logits(logits, vocab, inverse_temperature(options.temperature), x);
  const RowNormalizer norm = row_normalizer(x, vocab);
  if (!std::isfinite(norm.max) || !std::isfinite(norm.log_sum)) {
    throw base::RunError(base::expectation("sample", "finite logits", "a row with NaN or infinity",
                                           "a lower learning rate, or check the weights"));
  }
  int32_t token = 0;
  if (options.temperature == 0.0F) {
    token = static_cast<int32_t>(std::find(x, x + vocab, norm.max) - x);
  } else {
    kernels().weights(x, vocab, norm.max, e);
    truncate(x, vocab, options, e);
    token = inverse_cdf(e, vocab, u);
  }
  return {token, norm.log_prob(x[token])};
}

void sample_rows(const Exec& exec, const float* logits, int64_t stride, int64_t rows, int64_t vocab,
                 const SampleOptions* options, const float* u, Sampled* out) {
  exec.parallel_for(rows, row_grain(4 * vocab), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) out[r] = sample_row(logits + r * stride, vocab, options[r], u[r]);
  });
}

}  // namespace collimate::tensor
