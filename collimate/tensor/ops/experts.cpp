#include "collimate/tensor/ops/experts.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/base/fault.h"
#include "collimate/tensor/kernels/grain.h"
#include "collimate/tensor/kernels/pointwise.h"
#include "collimate/tensor/kernels/softmax.h"
#include "collimate/tensor/operations.h"

namespace collimate::tensor {
namespace {

using shape::Experts;

constexpr float kLeastSum = 1e-20F;                 // keeps a division away from 0
constexpr int64_t kSmallExpert = int64_t{1} << 21;  // multiply-adds; one thread does a smaller expert alone
constexpr int64_t kExpertsOfThread = 4;             // one thread does an expert with at most 1/4 of a thread's rows
constexpr int kAccumulators = 16;                   // partial sums of a dot product
constexpr float kLeast = -std::numeric_limits<float>::infinity();

// Writes the scores of one token. Returns the log of the sum of the logits' exponentials, or 0 for sigmoids.
float score(const Experts& how, const float* logits, float* scores) {
  float max = 0, log_sum = 0, sum = 0;
  if (how.sigmoid) {
    pointwise_kernels().sigmoid(logits, how.count, scores);
    return 0;
  }
  softmax_kernels().normalizer(logits, how.count, &max, &log_sum, scores);
  for (int64_t e = 0; e < how.count; ++e) sum += scores[e];
  for (int64_t e = 0; e < how.count; ++e) scores[e] /= sum;
  return max + log_sum;
}

// A Chooser chooses the experts of one token after another, and keeps the memory that it needs for that.
class Chooser {
 public:
  explicit Chooser(const Experts& how)
      : how_(how), values_(static_cast<size_t>(how.count)), totals_(static_cast<size_t>(how.groups)) {}

  void choose(const float* scores, const float* bias, int32_t* choices) {
    for (int64_t e = 0; e < how_.count; ++e) {
      const float value = bias == nullptr ? scores[e] : scores[e] + bias[e];
      base::at(values_, e) = std::isnan(value) ? kLeast : value;
    }
    list_candidates();
    put_best_first(candidates_, values_, how_.per_token);
    std::copy_n(candidates_.begin(), how_.per_token, choices);
    std::sort(choices, choices + how_.per_token);
  }

 private:
  // Moves the numbers of the `count` highest values to the front; of equal values the lower number comes first.
  static void put_best_first(std::vector<int32_t>& numbers, const std::vector<float>& values, int64_t count) {
    std::partial_sort(numbers.begin(), numbers.begin() + count, numbers.end(), [&](int32_t a, int32_t b) {
      const float first = base::at(values, a), second = base::at(values, b);
      return first > second || (first == second && a < b);
    });
  }

  // Lists the experts of the chosen groups.
  void list_candidates() {
    const int64_t each = how_.count / how_.groups;
    groups_.resize(totals_.size());
    std::iota(groups_.begin(), groups_.end(), 0);
    if (how_.groups > 1) {
      for (int64_t g = 0; g < how_.groups; ++g) base::at(totals_, g) = total(g * each, each);
      put_best_first(groups_, totals_, how_.chosen_groups);
    }
    candidates_.clear();
    for (int64_t g = 0; g < how_.chosen_groups; ++g)
      for (int64_t e = 0; e < each; ++e) candidates_.push_back(static_cast<int32_t>(base::at(groups_, g) * each + e));
  }

  // Returns the value by which a group is compared: the score of its best expert, or the sum of its best two.
  float total(int64_t begin, int64_t count) const {
    float first = kLeast, second = kLeast;
    for (int64_t e = begin; e < begin + count; ++e) {
      const float value = base::at(values_, e);
      second = std::max(second, std::min(first, value));
      first = std::max(first, value);
    }
    return how_.group_best ? first : first + second;
  }

  const Experts& how_;
  std::vector<float> values_, totals_;  // [E], [groups]
  std::vector<int32_t> groups_, candidates_;
};

float sum_of_chosen(const Experts& how, const float* scores, const int32_t* choices) {
  float sum = kLeastSum;
  for (int64_t k = 0; k < how.per_token; ++k) sum += scores[choices[k]];
  return sum;
}

void weigh(const Experts& how, const float* scores, const int32_t* choices, float* weights) {
  const auto scale = static_cast<float>(how.scale);
  const float sum = how.normalized ? sum_of_chosen(how, scores, choices) : 1.0F;
  for (int64_t k = 0; k < how.per_token; ++k) weights[k] = scores[choices[k]] / sum * scale;
}

// Writes d scores [E] of one token from the gradients of its weights.
void weigh_backward(const Experts& how, const float* scores, const int32_t* choices, const float* dweights,
                    float* dscores) {
  const auto scale = static_cast<float>(how.scale);
  const float sum = how.normalized ? sum_of_chosen(how, scores, choices) : 1.0F;
  float of_sum = 0;
  for (int64_t k = 0; how.normalized && k < how.per_token; ++k) of_sum += dweights[k] * scores[choices[k]];
  std::fill_n(dscores, how.count, 0.0F);
  for (int64_t k = 0; k < how.per_token; ++k) dscores[choices[k]] = (dweights[k] - of_sum / sum) / sum * scale;
}

// Turns d scores into d logits, in place.
void score_backward(const Experts& how, const float* scores, float* d) {
  float mean = 0;
  for (int64_t e = 0; !how.sigmoid && e < how.count; ++e) mean += scores[e] * d[e];
  for (int64_t e = 0; e < how.count; ++e) d[e] = scores[e] * (how.sigmoid ? d[e] * (1.0F - scores[e]) : d[e] - mean);
}

// Adds the gradient of (log sum)² of a row: 2 (log sum) times the softmax. `slope` holds the factors but the softmax.
void add_square_slope(const Experts& how, const float* scores, float slope, float* dlogits) {
  for (int64_t e = 0; e < how.count; ++e) dlogits[e] += slope * scores[e];
}

float dot(const float* a, const float* b, int64_t count) {
  float sums[kAccumulators] = {};
  int64_t i = 0;
  for (; i + kAccumulators <= count; i += kAccumulators)
    for (int j = 0; j < kAccumulators; ++j) sums[j] += a[i + j] * b[i + j];
  for (int j = 0; i < count; ++i, ++j) sums[j] += a[i] * b[i];
  for (int step = 1; step < kAccumulators; step *= 2)
    for (int j = 0; j < kAccumulators; j += 2 * step) sums[j] += sums[j + step];
  return sums[0];
}

// Calls body(exec, expert, first row, rows) for each expert that has rows. Most run side by side, each on one thread;
// experts with more rows than the share that keeps all threads busy run afterwards, each on all threads.
template <typename Body>
void for_each_expert(const Exec& exec, const int32_t* starts, int64_t experts, int64_t work_per_row, const Body& body) {
  const auto rows = [&](int64_t e) { return int64_t{starts[e + 1]} - starts[e]; };
  const int64_t share = starts[experts] / (kExpertsOfThread * exec.threads());
  const auto is_small = [&](int64_t e) { return rows(e) <= share || rows(e) * work_per_row < kSmallExpert; };
  exec.parallel_for(experts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t e = begin; e < end; ++e)
      if (rows(e) > 0 && is_small(e)) body(Exec{nullptr, exec.device}, e, starts[e], rows(e));
  });
  for (int64_t e = 0; e < experts; ++e)
    if (!is_small(e)) body(exec, e, starts[e], rows(e));
}

int64_t place_of(const Combination& how, int64_t choice) { return how.places == nullptr ? choice : how.places[choice]; }

int64_t combine_grain(const Combination& how) { return row_grain(how.width * how.per_token); }

}  // namespace

void cpu::route(const Exec& exec, const Experts& how, const float* logits, int64_t tokens, const float* bias,
                const Routed& out) {
  exec.parallel_for(tokens, row_grain(16 * how.count), [&](int64_t begin, int64_t end) {
    Chooser chooser(how);
    for (int64_t t = begin; t < end; ++t) {
      float* scores = out.scores + t * how.count;
      int32_t* choices = out.choices + t * how.per_token;
      const float log_sum = score(how, logits + t * how.count, scores);
      if (out.log_sums != nullptr) out.log_sums[t] = log_sum;
      chooser.choose(scores, bias, choices);
      weigh(how, scores, choices, out.weights + t * how.per_token);
    }
  });
  base::fault_rows("route", out.weights, tokens, how.per_token, how.per_token);
}

void cpu::replay_routes(const Exec& exec, const Experts& how, const RecordedChoices& recorded, int64_t tokens,
                        const Routed& routed) {
  exec.parallel_for(tokens, row_grain(how.per_token), [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int32_t* other = recorded.choices + t * how.per_token;
      int32_t* own = routed.choices + t * how.per_token;
      if (other[0] < 0 || std::equal(other, other + how.per_token, own)) continue;
      ++recorded.differ[t];
      if (!recorded.replayed) continue;
      std::copy_n(other, how.per_token, own);
      weigh(how, routed.scores + t * how.count, own, routed.weights + t * how.per_token);
    }
  });
}

void cpu::route_backward(const Exec& exec, const Experts& how, const Routed& routed, int64_t tokens,
                         const float* dweights, const LoadSlopes& slopes, float* dlogits) {
  COLLIMATE_CHECK(slopes.counts == nullptr || routed.log_sums != nullptr, "a loss of the load without log sums");
  exec.parallel_for(tokens, row_grain(4 * how.count), [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const float* scores = routed.scores + t * how.count;
      float* d = dlogits + t * how.count;
      weigh_backward(how, scores, routed.choices + t * how.per_token, dweights + t * how.per_token, d);
      const float count = slopes.counts == nullptr ? 0 : slopes.counts[t];
      for (int64_t e = 0; count > 0 && e < how.count; ++e) d[e] += count * slopes.scores[e];
      score_backward(how, scores, d);
      if (count > 0) add_square_slope(how, scores, 2 * count * slopes.squares * routed.log_sums[t], d);
    }
  });
}

// One thread makes all sums of an expert, over ascending tokens.
void cpu::measure_routes(const Exec& exec, const Experts& how, const Routed& routed, int64_t tokens,
                         const float* counts, float* load) {
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t k = 0; k < how.per_token; ++k) load[routed.choices[t * how.per_token + k]] += counts[t];
  exec.parallel_for(how.count, row_grain(tokens), [&](int64_t begin, int64_t end) {
    for (int64_t t = 0; t < tokens; ++t)
      for (int64_t e = begin; e < end; ++e) load[how.count + e] += counts[t] * routed.scores[t * how.count + e];
  });
  for (int64_t t = 0; routed.log_sums != nullptr && t < tokens; ++t)
    load[2 * how.count] += counts[t] * routed.log_sums[t] * routed.log_sums[t];
}

void cpu::sort_by_expert(const Exec&, const Experts& how, const int32_t* choices, int64_t tokens,
                         const ExpertRows& out) {
  const int64_t rows = tokens * how.per_token;
  std::fill_n(out.starts, how.count + 1, 0);
  for (int64_t i = 0; i < rows; ++i) ++out.starts[choices[i] + 1];
  std::partial_sum(out.starts, out.starts + how.count + 1, out.starts);
  std::vector<int32_t> next(out.starts, out.starts + how.count);
  for (int64_t i = 0; i < rows; ++i) {
    const int32_t row = base::at(next, choices[i])++;
    out.places[i] = row;
    out.tokens[row] = static_cast<int32_t>(i / how.per_token);
  }
}

void cpu::expert_linear(const Exec& exec, const float* x, const int32_t* starts,
                        std::span<const LinearPanels* const> panels, float* y) {
  const int64_t n = panels.front()->n, k = panels.front()->k;
  for_each_expert(exec, starts, static_cast<int64_t>(panels.size()), n * k,
                  [&](const Exec& with, int64_t e, int64_t first, int64_t rows) {
                    const LinearPanels& w = *base::at(panels, e);
                    cpu::linear(with, x + first * k, k, rows, w, y + first * n, n, {});
                  });
}

void cpu::expert_grad_input(const Exec& exec, ComputeType type, const float* dy, const int32_t* starts,
                            std::span<const float* const> w, int64_t n, int64_t k, float* dx) {
  for_each_expert(exec, starts, static_cast<int64_t>(w.size()), n * k,
                  [&](const Exec& with, int64_t e, int64_t first, int64_t rows) {
                    cpu::linear_grad_input(with, type, dy + first * n, n, rows, base::at(w, e), n, k, dx + first * k, k,
                                           /*accumulate=*/false);
                  });
}

void cpu::expert_grad_weight(const Exec& exec, ComputeType type, const float* dy, const float* x, const int32_t* starts,
                             int64_t n, int64_t k, std::span<float* const> dw) {
  for_each_expert(exec, starts, static_cast<int64_t>(dw.size()), n * k,
                  [&](const Exec& with, int64_t e, int64_t first, int64_t rows) {
                    cpu::linear_grad_weight(with, type, dy + first * n, n, x + first * k, k, rows, n, k,
                                            base::at(dw, e), nullptr);
                  });
}

void cpu::add_expert_bias(const Exec& exec, const int32_t* starts, std::span<const float* const> biases, int64_t n,
                          float* y) {
  for_each_expert(exec, starts, std::ssize(biases), n, [&](const Exec& with, int64_t e, int64_t first, int64_t rows) {
    cpu::add_bias(with, base::at(biases, e), rows, n, y + first * n, n);
  });
  base::fault_rows("add_expert_bias", y, starts[biases.size()], n, n);
}

void cpu::expert_grad_bias(const Exec& exec, const float* dy, const int32_t* starts, int64_t n,
                           std::span<float* const> db) {
  exec.parallel_for(std::ssize(db), 1, [&](int64_t begin, int64_t end) {
    for (int64_t e = begin; e < end; ++e)
      for (int64_t r = starts[e]; r < starts[e + 1]; ++r) pointwise_kernels().add(dy + r * n, n, base::at(db, e));
  });
}

void cpu::combine_experts(const Exec& exec, const Combination& how, const float* y, float* out) {
  exec.parallel_for(how.tokens, combine_grain(how), [&](int64_t begin, int64_t end) {
    for (int64_t choice = begin * how.per_token; choice < end * how.per_token; ++choice) {
      const float* from = y + place_of(how, choice) * how.width;
      float* to = out + choice / how.per_token * how.width;
      const float weight = how.weights[choice];
      for (int64_t i = 0; i < how.width; ++i) to[i] += weight * from[i];
    }
  });
  base::fault_rows("combine_experts", out, how.tokens, how.width, how.width);
}

void cpu::combine_experts_backward(const Exec& exec, const Combination& how, const float* dout, const float* y,
                                   float* dy, float* dweights) {
  exec.parallel_for(how.tokens, combine_grain(how), [&](int64_t begin, int64_t end) {
    for (int64_t choice = begin * how.per_token; choice < end * how.per_token; ++choice) {
      const int64_t row = place_of(how, choice) * how.width;
      const float* from = dout + choice / how.per_token * how.width;
      const float weight = how.weights[choice];
      dweights[choice] = dot(from, y + row, how.width);
      for (int64_t i = 0; i < how.width; ++i) dy[row + i] = weight * from[i];
    }
  });
}

void route(const Exec& exec, const Experts& how, const float* logits, int64_t tokens, const float* bias,
           const Routed& out) {
  exec.operations().route(exec, how, logits, tokens, bias, out);
}

void replay_routes(const Exec& exec, const Experts& how, const RecordedChoices& recorded, int64_t tokens,
                   const Routed& routed) {
  exec.operations().replay_routes(exec, how, recorded, tokens, routed);
}

void measure_routes(const Exec& exec, const Experts& how, const Routed& routed, int64_t tokens, const float* counts,
                    float* load) {
  exec.operations().measure_routes(exec, how, routed, tokens, counts, load);
}

void route_backward(const Exec& exec, const Experts& how, const Routed& routed, int64_t tokens, const float* dweights,
                    const LoadSlopes& slopes, float* dlogits) {
  exec.operations().route_backward(exec, how, routed, tokens, dweights, slopes, dlogits);
}

void sort_by_expert(const Exec& exec, const Experts& how, const int32_t* choices, int64_t tokens,
                    const ExpertRows& out) {
  exec.operations().sort_by_expert(exec, how, choices, tokens, out);
}

void expert_linear(const Exec& exec, const float* x, const int32_t* starts, std::span<const LinearPanels* const> panels,
                   float* y) {
  exec.operations().expert_linear(exec, x, starts, panels, y);
}

void expert_grad_input(const Exec& exec, ComputeType type, const float* dy, const int32_t* starts,
                       std::span<const float* const> w, int64_t n, int64_t k, float* dx) {
  exec.operations().expert_grad_input(exec, type, dy, starts, w, n, k, dx);
}

void expert_grad_weight(const Exec& exec, ComputeType type, const float* dy, const float* x, const int32_t* starts,
                        int64_t n, int64_t k, std::span<float* const> dw) {
  exec.operations().expert_grad_weight(exec, type, dy, x, starts, n, k, dw);
}

void add_expert_bias(const Exec& exec, const int32_t* starts, std::span<const float* const> biases, int64_t n,
                     float* y) {
  exec.operations().add_expert_bias(exec, starts, biases, n, y);
}

void expert_grad_bias(const Exec& exec, const float* dy, const int32_t* starts, int64_t n, std::span<float* const> db) {
  exec.operations().expert_grad_bias(exec, dy, starts, n, db);
}

void combine_experts(const Exec& exec, const Combination& how, const float* y, float* out) {
  exec.operations().combine_experts(exec, how, y, out);
}

void combine_experts_backward(const Exec& exec, const Combination& how, const float* dout, const float* y, float* dy,
                              float* dweights) {
  exec.operations().combine_experts_backward(exec, how, dout, y, dy, dweights);
}

}  // namespace collimate::tensor
