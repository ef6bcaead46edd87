#include "collimate/tensor/ops/listed.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "collimate/base/error.h"
#include "collimate/tensor/kernels/grain.h"
#include "collimate/tensor/kernels/softmax.h"
#include "collimate/tensor/operations.h"

namespace collimate::tensor {
namespace {

constexpr int64_t kLookedAt = 64;  // logits that are compared at once with the bound
constexpr float kNothing = -std::numeric_limits<float>::infinity();

std::span<const int32_t> ids_of(const ListedTokens& listed, int64_t row) {
  return {listed.ids + row * listed.count, static_cast<size_t>(listed.count)};
}

// IdsHere are a row's listed ids within [first, first + count), and the number of listed ids below them.
struct IdsHere {
  std::span<const int32_t> ids;
  size_t before = 0;
};
IdsHere ids_between(const ListedTokens& listed, int64_t row, int64_t first, int64_t count) {
  const std::span<const int32_t> all = ids_of(listed, row);
  const auto begin = std::lower_bound(all.begin(), all.end(), first);
  const auto end = std::lower_bound(begin, all.end(), first + count);
  const auto before = static_cast<size_t>(begin - all.begin());
  return {all.subspan(before, static_cast<size_t>(end - begin)), before};
}

// Larger orders places by logit: larger ones first, of equal ones the lower place first, NaN last.
struct Larger {
  const float* x;
  float of(int32_t i) const { return std::isnan(x[i]) ? kNothing : x[i]; }
  bool operator()(int32_t a, int32_t b) const { return of(a) != of(b) ? of(a) > of(b) : a < b; }
};

bool any_larger(const float* x, int64_t count, float bound) {
  int found = 0;
  for (int64_t i = 0; i < count; ++i) found |= x[i] > bound ? 1 : 0;
  return found != 0;
}

// LargestSoFar keeps the places of the largest logits so far, at times more of them than are wanted.
class LargestSoFar {
 public:
  LargestSoFar(const float* x, int64_t count) : larger_{x}, count_(static_cast<size_t>(count)) {}

  void add(int64_t begin, int64_t end) {
    if (full_ && !any_larger(larger_.x + begin, end - begin, bound_)) return;
    for (int64_t i = begin; i < end; ++i)
      if (!full_ || larger_.x[i] > bound_) places_.push_back(static_cast<int32_t>(i));
    if (places_.size() > 2 * count_ + kLookedAt) keep_largest();
  }
  const std::vector<int32_t>& places() {
    keep_largest();
    return places_;
  }

 private:
  void keep_largest() {
    if (places_.size() > count_) {
      std::nth_element(places_.begin(), places_.begin() + static_cast<int64_t>(count_) - 1, places_.end(), larger_);
      places_.resize(count_);
    }
    full_ = places_.size() == count_;
    if (full_) bound_ = larger_.of(*std::max_element(places_.begin(), places_.end(), larger_));
  }

  Larger larger_;
  size_t count_;
  std::vector<int32_t> places_;
  bool full_ = false;
  float bound_ = kNothing;  // the least of the largest
};

// Returns the derivative of a capped and scaled logit by the logit that the linear layer made.
float slope(const SoftmaxGradient& g, float logit) {
  if (g.softcap <= 0) return g.factor;
  const float t = logit / (g.softcap * g.factor);
  return g.factor * (1.0F - t * t);
}

}  // namespace

void check_listed(const ListedTokens& listed, int64_t rows, int64_t vocabulary) {
  for (int64_t r = 0; r < rows; ++r) {
    int64_t last = -1;
    for (const int32_t id : ids_of(listed, r)) {
      if (id <= last || id >= vocabulary)
        throw base::InputError(
            base::expectation("log_prob", fmt::format("ascending ids in [0, {}), each once", vocabulary),
                              fmt::format("{} behind {}", id, last), "a teacher with the tokenizer of this model"));
      last = id;
    }
  }
}

void largest_ids(const float* x, int64_t n, int64_t first, int64_t count, int32_t* ids) {
  COLLIMATE_CHECK(count >= 1 && count <= n, "the {} largest of {} logits", count, n);
  if (count == n) return std::iota(ids, ids + n, static_cast<int32_t>(first));
  LargestSoFar largest(x, count);
  for (int64_t begin = 0; begin < n; begin += kLookedAt) largest.add(begin, std::min(begin + kLookedAt, n));
  std::copy(largest.places().begin(), largest.places().end(), ids);
  std::sort(ids, ids + count);
  for (int64_t k = 0; k < count; ++k) ids[k] += static_cast<int32_t>(first);
}

void add_rest_sums(const ListedTokens& listed, int64_t row, float* x, const VocabularyRange& range, float max,
                   float* sums) {
  const std::span<const int32_t> here = ids_between(listed, row, range.first, range.count).ids;
  std::vector<float> away;
  for (const int32_t id : here) away.push_back(std::exchange(x[id - range.first], kNothing));
  softmax_kernels().part_sums(x, range, max, nullptr, sums);
  for (size_t i = 0; i < here.size(); ++i) x[here[i] - range.first] = away[i];
}

float rest_of_sums(float log_sum, float* sums) {
  const float sum = sum_of_vocab_chunks(sums);
  if (sum == 0.0F) return kLeastRest;
  const float rest = softmax_kernels().log(sum) - log_sum;
  return rest < kLeastRest ? kLeastRest : rest;
}

void cpu::part_listed(const Exec& exec, const LogProbHead& head, const ListedTokens& listed, const PartRows& part,
                      const PartListed& out) {
  check_listed(listed, head.rows, head.vocabulary());
  const VocabularyRange range{head.first, head.head->n, head.vocabulary()};
  std::fill_n(out.logits, head.rows * listed.count, 0.0F);
  std::fill_n(out.rest_sums, head.rows * shape::kVocabChunks, 0.0F);
  exec.parallel_for(head.rows, row_grain(4 * range.count), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      float* x = part.logits + r * range.count;
      const IdsHere here = ids_between(listed, r, range.first, range.count);
      float* own = out.logits + r * listed.count + here.before;
      for (size_t i = 0; i < here.ids.size(); ++i) own[i] = x[here.ids[i] - range.first];
      add_rest_sums(listed, r, x, range, part.max[r], out.rest_sums + r * shape::kVocabChunks);
    }
  });
}

void cpu::part_likely(const Exec& exec, const LogProbHead& head, const float* logits, const PartLikely& out) {
  const int64_t n = head.head->n, count = std::min(out.count, n);
  exec.parallel_for(head.rows, row_grain(4 * n), [&](int64_t begin, int64_t end) {
    std::vector<int32_t> ids(static_cast<size_t>(count));
    for (int64_t r = begin; r < end; ++r) {
      float *values = out.out + r * out.stride, *places = values + out.count;
      std::fill_n(values, out.count, kNothing);
      std::fill_n(places, out.count, -1.0F);
      largest_ids(logits + r * n, n, 0, count, ids.data());
      for (int64_t k = 0; k < count; ++k) {
        values[k] = logits[r * n + ids[k]];
        places[k] = static_cast<float>(head.first + ids[k]);
      }
    }
  });
}

// Let p be the probabilities, r that of the rest, and g_t, g_k and g_r the gradients of the log-probs of the target, of
// the listed tokens and of the rest, with sum G. Then d x_i = -p_i G + g_i for a listed token and -p_i (G - g_r / r)
// for another one; the target gets g_t more. Each is computed as written here: with a common term taken out, a small r
// would make both sides of a difference large.
void listed_gradient(const ListedGradient& listed, int64_t row, int64_t first, const SoftmaxGradient& g) {
  const IdsHere here = ids_between(listed.tokens, row, first, g.vocab);
  const bool has_target = g.target >= 0 && g.target < g.vocab;
  const float target_logit = has_target ? g.logits[g.target] : 0.0F;  // `out` may be `logits`
  std::vector<float> x, d(here.ids.size());
  for (const int32_t id : here.ids) x.push_back(g.logits[id - first]);
  const float* dlog_prob = listed.dlog_prob + row * listed.tokens.count;
  const float rest = listed.rest[row], drest = rest > kLeastRest ? listed.drest[row] : 0.0F;
  const double sum = std::accumulate(dlog_prob, dlog_prob + listed.tokens.count, double{g.dlog_prob} + drest);
  SoftmaxGradient others = g;
  others.target = -1;
  others.dlog_prob = static_cast<float>(sum - drest * std::exp(-double{rest}));
  softmax_kernels().gradient(others);
  SoftmaxGradient own = others;
  own.logits = x.data();
  own.out = d.data();
  own.vocab = static_cast<int64_t>(x.size());
  own.dlog_prob = static_cast<float>(sum);
  softmax_kernels().gradient(own);
  for (size_t i = 0; i < x.size(); ++i) g.out[here.ids[i] - first] = d[i] + dlog_prob[here.before + i] * slope(g, x[i]);
  if (has_target) g.out[g.target] += g.dlog_prob * slope(g, target_logit);
}

void part_listed(const Exec& exec, const LogProbHead& head, const ListedTokens& listed, const PartRows& part,
                 const PartListed& out) {
  exec.operations().part_listed(exec, head, listed, part, out);
}

void part_likely(const Exec& exec, const LogProbHead& head, const float* logits, const PartLikely& out) {
  exec.operations().part_likely(exec, head, logits, out);
}

}  // namespace collimate::tensor
