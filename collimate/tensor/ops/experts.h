#pragma once

#include <cstdint>
#include <span>

#include "collimate/shape/block.h"
#include "collimate/tensor/ops/linear.h"

namespace collimate::tensor {

// Products over routed experts. There are T tokens, E experts, K chosen experts per token, and R = T K rows: one for
// each token and expert that it chose. Rows are sorted by expert and then by token, so that an expert's rows are
// adjacent. All numbers lie on the device, because only the device knows how many rows each expert has.

// Routed holds the results of a router, made from its logits [T, E].
struct Routed {
  float* scores = nullptr;     // [T, E] the softmax of each row, or sigmoids
  int32_t* choices = nullptr;  // [T, K] the chosen experts, ascending
  float* weights = nullptr;    // [T, K]
  float* log_sums = nullptr;   // [T] log Σ exp of a row's logits; null: not wanted, as with sigmoids, which have none
};
// Chooses the K experts with the highest scores, to which `bias` [E] is added unless it is null; of equal scores the
// lower expert wins, and NaN ranks below everything (Shazeer et al. 2017; groups and bias: DeepSeek-AI 2024, arXiv
// 2412.19437). All in fp32.
void route(const Exec& exec, const shape::Experts& how, const float* logits, int64_t tokens, const float* bias,
           const Routed& out);
// RecordedChoices are choices that a router made elsewhere for the same tokens.
struct RecordedChoices {
  const int32_t* choices = nullptr;  // [T, K] ascending; -1 for a token without recorded choices
  bool replayed = false;             // they replace the router's own choices, weighted by the router's own scores
  int32_t* differ = nullptr;         // [T] grows by one for each token whose own choices differ
};
// Compares the choices of route() with the recorded ones, and replaces them where `replayed` is set.
void replay_routes(const Exec& exec, const shape::Experts& how, const RecordedChoices& recorded, int64_t tokens,
                   const Routed& routed);
// Returns the number of entries of a router's load: choices by expert, scores by expert, and squared log sums.
constexpr int64_t load_entries(const shape::Experts& how) { return 2 * how.count + 1; }
// Adds every token's choices, scores and squared log sum, each times `counts` [T], to load [load_entries].
void measure_routes(const Exec& exec, const shape::Experts& how, const Routed& routed, int64_t tokens,
                    const float* counts, float* load);
// LoadSlopes is the gradient of a loss of that load: by the sums of scores and by the sum of squared log sums, with the
// counts of measure_routes.
struct LoadSlopes {
  const float* counts = nullptr;  // [T]; null: there is no such loss, and the others are not read
  const float* scores = nullptr;  // [E]
  float squares = 0;
};
// Writes dlogits [T, E] from dweights [T, K] and from the loss of `slopes`; the choice itself has no gradient.
void route_backward(const Exec& exec, const shape::Experts& how, const Routed& routed, int64_t tokens,
                    const float* dweights, const LoadSlopes& slopes, float* dlogits);

struct ExpertRows {
  int32_t* starts = nullptr;  // [E + 1] first row of each expert
  int32_t* tokens = nullptr;  // [R] token of a row
  int32_t* places = nullptr;  // [T, K] row of a token's choice
};
void sort_by_expert(const Exec& exec, const shape::Experts& how, const int32_t* choices, int64_t tokens,
                    const ExpertRows& out);

// Computes y [R, n] = x [R, k] W^T, where W is that of the row's expert; all have one size. Each row has the bits that
// linear() gives it.
void expert_linear(const Exec& exec, const float* x, const int32_t* starts, std::span<const LinearPanels* const> panels,
                   float* y);
// Computes dx [R, k] from dy [R, n], where w[e] is row-major fp32 [n, k], and dw[e] [n, k] += dy^T x over the expert's
// rows, as linear_grad_input and linear_grad_weight do.
void expert_grad_input(const Exec& exec, ComputeType type, const float* dy, const int32_t* starts,
                       std::span<const float* const> w, int64_t n, int64_t k, float* dx);
void expert_grad_weight(const Exec& exec, ComputeType type, const float* dy, const float* x, const int32_t* starts,
                        int64_t n, int64_t k, std::span<float* const> dw);

// Computes y [R, n] += the bias [n] of the row's expert, and db[e] [n] += the sum of dy over the expert's rows.
void add_expert_bias(const Exec& exec, const int32_t* starts, std::span<const float* const> biases, int64_t n,
                     float* y);
void expert_grad_bias(const Exec& exec, const float* dy, const int32_t* starts, int64_t n, std::span<float* const> db);

// A Combination says which rows are combined for a token: those of its choices, or, where `places` is null, its own row
// (K = 1).
struct Combination {
  const int32_t* places = nullptr;  // [T, K]
  const float* weights = nullptr;   // [T, K]
  int64_t tokens = 0;
  int64_t per_token = 1;
  int64_t width = 0;
};
// Computes out [T, width] += Σ weight * row of y, over a token's choices in their order.
void combine_experts(const Exec& exec, const Combination& how, const float* y, float* out);
// Computes dy = weight * dout and dweights [T, K] = dout · y, for the row of each choice.
void combine_experts_backward(const Exec& exec, const Combination& how, const float* dout, const float* y, float* dy,
                              float* dweights);

}  // namespace collimate::tensor
