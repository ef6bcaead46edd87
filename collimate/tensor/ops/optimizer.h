#pragma once

#include <cstdint>
#include <vector>

#include "collimate/tensor/exec.h"

namespace collimate::tensor {

struct AdamwOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.0;  // decoupled: first of all p *= 1 - lr * weight_decay
  int64_t step = 1;           // number of this update, from 1
  float grad_scale = 1.0F;    // the gradient is multiplied by it first (clipping), without being changed in memory
};

// Computes torch.optim.AdamW over count floats, in torch's order: decay, m = lerp(m, g, 1 - beta1), v = v beta2 + (1 -
// beta2) g², p -= lr / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + eps). Scalars are double, elements fp32.
void adamw(const Exec& exec, float* p, const float* g, float* m, float* v, int64_t count, const AdamwOptions& options);

// Writes sums of squares in double, one per chunk of 4096 elements (the last may have fewer), each made in 8 lanes, to
// sums [squares_chunks(count)] in the host's memory.
constexpr int64_t kSquaresChunk = 4096;
constexpr int64_t squares_chunks(int64_t count) { return (count + kSquaresChunk - 1) / kSquaresChunk; }
void squares_of_chunks(const Exec& exec, const float* x, int64_t count, double* sums);
// Returns the total of such sums by a balanced tree, so that it has the same bits wherever the chunks were summed.
double sum_of_chunks(std::vector<double> sums);
void scale(const Exec& exec, float factor, int64_t count, float* x);
// Computes x[i] += step (goal[i] - x[i]).
void move_towards(const Exec& exec, float step, const float* goal, int64_t count, float* x);
// Exchanges x[i] and y[i].
void exchange(const Exec& exec, int64_t count, float* x, float* y);

}  // namespace collimate::tensor
