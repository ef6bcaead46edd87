#include "collimate/tensor/ops/optimizer.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "collimate/base/at.h"
#include "collimate/base/fault.h"
#include "collimate/tensor/kernels/pointwise.h"
#include "collimate/tensor/operations.h"

namespace collimate::tensor {
namespace {

constexpr int64_t kUpdateGrain = 16384;

AdamwScalars scalars_of(const AdamwOptions& o) {
  const double lr = o.learning_rate;
  const double correction1 = 1.0 - std::pow(o.beta1, static_cast<double>(o.step));
  const double correction2 = 1.0 - std::pow(o.beta2, static_cast<double>(o.step));
  AdamwScalars s{};
  s.keep = static_cast<float>(1.0 - lr * o.weight_decay);
  s.one_minus_beta1 = static_cast<float>(1.0 - o.beta1);
  s.beta2 = static_cast<float>(o.beta2);
  s.one_minus_beta2 = static_cast<float>(1.0 - o.beta2);
  s.minus_step = static_cast<float>(-lr / correction1);
  s.root_correction = static_cast<float>(std::sqrt(correction2));
  s.eps = static_cast<float>(o.eps);
  s.grad_scale = o.grad_scale;
  return s;
}

double chunk_squares(const float* x, int64_t count) {
  double lanes[8] = {};
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    for (int l = 0; l < 8; ++l) lanes[l] += static_cast<double>(x[i + l]) * x[i + l];
  }
  for (int l = 0; i < count; ++i, ++l) lanes[l] += static_cast<double>(x[i]) * x[i];
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

}  // namespace

void cpu::adamw(const Exec& exec, float* p, const float* g, float* m, float* v, int64_t count,
                const AdamwOptions& options) {
  const AdamwScalars scalars = scalars_of(options);
  exec.parallel_for(count, kUpdateGrain, [&](int64_t begin, int64_t end) {
    pointwise_kernels().adamw(p + begin, g + begin, m + begin, v + begin, end - begin, scalars);
  });
}

void cpu::squares_of_chunks(const Exec& exec, const float* x, int64_t count, double* sums) {
  exec.parallel_for(squares_chunks(count), 8, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c)
      sums[c] = chunk_squares(x + c * kSquaresChunk, std::min(kSquaresChunk, count - c * kSquaresChunk));
  });
}

void cpu::scale(const Exec& exec, float factor, int64_t count, float* x) {
  exec.parallel_for(count, kUpdateGrain,
                    [&](int64_t begin, int64_t end) { pointwise_kernels().scale(factor, end - begin, x + begin); });
  base::fault_rows("scale", x, count, 1, 1);
}

void cpu::move_towards(const Exec& exec, float step, const float* goal, int64_t count, float* x) {
  exec.parallel_for(count, kUpdateGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) x[i] += step * (goal[i] - x[i]);
  });
}

void cpu::exchange(const Exec& exec, int64_t count, float* x, float* y) {
  exec.parallel_for(count, kUpdateGrain,
                    [&](int64_t begin, int64_t end) { std::swap_ranges(x + begin, x + end, y + begin); });
}

void adamw(const Exec& exec, float* p, const float* g, float* m, float* v, int64_t count, const AdamwOptions& options) {
  exec.operations().adamw(exec, p, g, m, v, count, options);
}

void squares_of_chunks(const Exec& exec, const float* x, int64_t count, double* sums) {
  exec.operations().squares_of_chunks(exec, x, count, sums);
}

double sum_of_chunks(std::vector<double> sums) {
  for (size_t step = 1; step < sums.size(); step *= 2) {
    for (size_t c = 0; c + step < sums.size(); c += 2 * step) sums[c] += sums[c + step];
  }
  return sums.empty() ? 0.0 : sums[0];
}

void scale(const Exec& exec, float factor, int64_t count, float* x) { exec.operations().scale(exec, factor, count, x); }
void move_towards(const Exec& exec, float step, const float* goal, int64_t count, float* x) {
  exec.operations().move_towards(exec, step, goal, count, x);
}
void exchange(const Exec& exec, int64_t count, float* x, float* y) { exec.operations().exchange(exec, count, x, y); }

}  // namespace collimate::tensor
