#include "collimate/tensor/ops/sample.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "collimate/base/error.h"
#include "collimate/tensor/kernels/grain.h"
#include "collimate/tensor/kernels/scratch.h"
#include "collimate/tensor/kernels/softmax.h"
#include "collimate/tensor/ops/log_prob.h"

namespace collimate::tensor {
namespace {

bool above(const float* x, int32_t a, int32_t b) { return x[a] > x[b] || (x[a] == x[b] && a < b); }

// The `count` most likely tokens, ids ascending.
std::vector<int32_t> most_likely(const float* x, int64_t vocab, int64_t count) {
  std::vector<int32_t> ids(static_cast<size_t>(vocab));
  std::iota(ids.begin(), ids.end(), 0);
  if (count < vocab) {
    std::nth_element(ids.begin(), ids.begin() + count, ids.end(), [x](int32_t a, int32_t b) { return above(x, a, b); });
    ids.resize(static_cast<size_t>(count));
    std::sort(ids.begin(), ids.end());
  }
  return ids;
}

// Tokens fall into buckets of 1/64 nat below the maximum, a monotone function of x: only the bucket in which the wanted
// mass is reached has to be sorted.
class TopP {
 public:
  TopP(const float* x, const float* e, float max, const std::vector<int32_t>& ids) : x_(x), e_(e), max_(max) {
    for (const int32_t id : ids) mass_[bucket(id)] += e[id];
    for (const double mass : mass_) total_ += mass;
  }

  // The smallest set of most likely tokens of `ids` whose mass reaches top_p of them all; at least one.
  std::vector<int32_t> keep(const std::vector<int32_t>& ids, float top_p) const {
    const double goal = static_cast<double>(top_p) * total_;
    double sum = 0;
    int last = 0;
    while (last + 1 < kBuckets && (mass_[last] == 0 || sum + mass_[last] < goal)) sum += mass_[last++];
    std::vector<int32_t> kept;
    std::vector<int32_t> edge;
    for (const int32_t id : ids) {
      const int b = bucket(id);
      if (b < last) kept.push_back(id);
      if (b == last) edge.push_back(id);
    }
    std::sort(edge.begin(), edge.end(), [this](int32_t a, int32_t b) { return above(x_, a, b); });
    for (const int32_t id : edge) {
      kept.push_back(id);
      sum += e_[id];
      if (sum >= goal) break;
    }
    return kept;
  }

 private:
  static constexpr int kBuckets = 2048;
  int bucket(int32_t id) const { return static_cast<int>(std::min((max_ - x_[id]) * 64.0F, kBuckets - 1.0F)); }

  const float* x_;
  const float* e_;
  float max_;
  double mass_[kBuckets] = {};
  double total_ = 0;
};

// Weights of tokens that truncation drops become zero. The most likely token has weight 1.
void truncate(const float* x, int64_t vocab, float max, const SampleOptions& options, float* e) {
  const int64_t count = options.top_k > 0 ? std::min<int64_t>(options.top_k, vocab) : vocab;
  if (count < vocab || options.top_p < 1.0F) {
    std::vector<int32_t> ids = most_likely(x, vocab, count);
    if (options.top_p < 1.0F) ids = TopP(x, e, max, ids).keep(ids, options.top_p);
    std::vector<float> kept;
    for (const int32_t id : ids) kept.push_back(e[id]);
    std::fill(e, e + vocab, 0.0F);
    for (size_t i = 0; i < kept.size(); ++i) e[ids[i]] = kept[i];
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
  softmax_kernels().block_sums(e, vocab, sums);
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

// logits / temperature and their normaliser.
struct TemperedRow {
  const float* x = nullptr;  // the logits themselves where the factor is 1, else `scaled`
  RowNormalizer norm;
};

// `weights` [vocab] or null: as in row_normalizer.
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
    truncate(x, vocab, norm.max, options, e);
    token = inverse_cdf(e, vocab, u);
  }
  return {token, norm.log_prob(x[token])};
}

float row_log_prob(const float* logits, int64_t vocab, float temperature, int32_t token) {
  const TemperedRow row = temper(logits, vocab, temperature, scratch(ScratchSlot::kLogits, vocab), nullptr);
  return row.norm.log_prob(row.x[token]);
}

void sample_rows(const Exec& exec, const float* logits, int64_t stride, int64_t rows, int64_t vocab,
                 const SampleOptions* options, const float* u, Sampled* out) {
  exec.parallel_for(rows, row_grain(4 * vocab), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) out[r] = sample_row(logits + r * stride, vocab, options[r], u[r]);
  });
}

}  // namespace collimate::tensor
