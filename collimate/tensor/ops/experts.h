#pragma once

#include <cstdint>
#include <span>

#include "collimate/shape/block.h"
#include "collimate/tensor/ops/linear.h"

namespace collimate::tensor {

// Products over routed experts. T tokens, E experts, K of them a token, R = T K rows: one for each token and expert
// that it chose. Rows are sorted by expert, those of one by token, so that an expert's rows lie together. All numbers
// lie on the device: how many rows an expert has is known there alone.

// Holds what a router made of its logits [T, E].
struct Routed {
  float* scores = nullptr;     // [T, E] the softmax of a row, or sigmoids
  int32_t* choices = nullptr;  // [T, K] experts, ascending
  float* weights = nullptr;    // [T, K]
  float* log_sums = nullptr;   // [T] log Σ exp of a row's logits; null: not asked for, and none with sigmoids
};
// The K experts with the highest scores, corrected by `bias` [E] or null; of equal ones the lower (Shazeer et al. 2017;
// groups and bias: DeepSeek-AI 2024, arXiv 2412.19437). NaN scores below all else. fp32.
void route(const Exec& exec, const shape::Experts& how, const float* logits, int64_t tokens, const float* bias,
           const Routed& out);
// Choices of the same tokens that a router made elsewhere.
struct RecordedChoices {
  const int32_t* choices = nullptr;  // [T, K] ascending; those of a token that has none are -1
  bool replayed = false;             // they take the place of its own, with weights by its own scores
  int32_t* differ = nullptr;         // [T] one more for a token whose own are others
};
// Compares what route() gave with them, and puts them in its place.
void replay_routes(const Exec& exec, const shape::Experts& how, const RecordedChoices& recorded, int64_t tokens,
                   const Routed& routed);
// Entries of a router's load: choices and scores by expert, squared log sums.
constexpr int64_t load_entries(const shape::Experts& how) { return 2 * how.count + 1; }
// Σ over tokens, each as often as `counts` [T] says: load [load_entries] += theirs.
void measure_routes(const Exec& exec, const shape::Experts& how, const Routed& routed, int64_t tokens,
                    const float* counts, float* load);
// A loss of that load: its slopes in the sums of scores and of squared log sums, and the counts again.
struct LoadSlopes {
  const float* counts = nullptr;  // [T]; null: there is no such loss
  const float* scores = nullptr;  // [E]
  float squares = 0;
};
// dlogits [T, E] from dweights [T, K] and that loss; the choice itself has no gradient.
void route_backward(const Exec& exec, const shape::Experts& how, const Routed& routed, int64_t tokens,
                    const float* dweights, const LoadSlopes& slopes, float* dlogits);

struct ExpertRows {
  int32_t* starts = nullptr;  // [E + 1] first row of each expert
  int32_t* tokens = nullptr;  // [R] token of a row
  int32_t* places = nullptr;  // [T, K] row of a token's choice
};
void sort_by_expert(const Exec& exec, const shape::Experts& how, const int32_t* choices, int64_t tokens,
                    const ExpertRows& out);

// y [R, n] = x [R, k] W^T, W that of the row's expert, all of one size. A row has the bits that linear() gives it.
void expert_linear(const Exec& exec, const float* x, const int32_t* starts, std::span<const LinearPanels* const> panels,
                   float* y);
// dx [R, k] from dy [R, n], w[e] row-major fp32 [n, k]; dw[e] [n, k] += dy^T x of the expert's rows. As
// linear_grad_input and linear_grad_weight.
void expert_grad_input(const Exec& exec, ComputeType type, const float* dy, const int32_t* starts,
                       std::span<const float* const> w, int64_t n, int64_t k, float* dx);
void expert_grad_weight(const Exec& exec, ComputeType type, const float* dy, const float* x, const int32_t* starts,
                        int64_t n, int64_t k, std::span<float* const> dw);

// y [R, n] += the bias [n] of the row's expert; db[e] [n] += the sum of dy over its rows.
void add_expert_bias(const Exec& exec, const int32_t* starts, std::span<const float* const> biases, int64_t n,
                     float* y);
void expert_grad_bias(const Exec& exec, const float* dy, const int32_t* starts, int64_t n, std::span<float* const> db);

// Says which rows are combined: those of a token's choices, or with `places` null its own (K = 1).
struct Combination {
  const int32_t* places = nullptr;  // [T, K]
  const float* weights = nullptr;   // [T, K]
  int64_t tokens = 0;
  int64_t per_token = 1;
  int64_t width = 0;
};
// out [T, width] += Σ weight · row of y, over a token's choices in their order.
void combine_experts(const Exec& exec, const Combination& how, const float* y, float* out);
// dy = weight · dout and dweights [T, K] = dout · y, of each choice's row.
void combine_experts_backward(const Exec& exec, const Combination& how, const float* dout, const float* y, float* dy,
                              float* dweights);

}  // namespace collimate::tensor
