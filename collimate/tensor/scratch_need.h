#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "collimate/tensor/kernels/scratch.h"

namespace collimate::tensor {

// A ScratchNeed counts the working memory that operations keep in the threads of a pool between calls (scratch()): of
// each slot the most that any of the calls takes which it is told of. The functions below tell it of calls with at most
// so many rows, from the formulas of the operations themselves on this machine's instruction set.
class ScratchNeed {
 public:
  explicit ScratchNeed(int threads) : threads_(threads) {}

  int threads() const { return threads_; }
  // Tells of floats in the thread that calls an operation, or in each thread of the pool.
  void in_caller(ScratchSlot slot, int64_t floats);
  void in_each(ScratchSlot slot, int64_t floats);
  // Tells that each thread makes the calls that `alone`, a need of one thread, was told of.
  void in_each(const ScratchNeed& alone);
  // Returns the bytes of all threads together, as the allocator counts them.
  int64_t bytes() const;

 private:
  using Slots = std::array<int64_t, static_cast<size_t>(ScratchSlot::kCount)>;

  int threads_;
  Slots caller_{}, each_{};  // floats
};

// The size of a product y [rows, n] = x [rows, k] W^T.
struct LinearSize {
  int64_t rows = 0, n = 0, k = 0;
  int reduction_chunks = 1;
};

// linear(); linear_grad_input() and linear_grad_weight().
void add_linear_scratch(const LinearSize& size, ScratchNeed& need);
void add_linear_backward_scratch(const LinearSize& size, ScratchNeed& need);
// log_softmax_gather() with the head's size, and its backward.
void add_log_prob_scratch(const LinearSize& head, ScratchNeed& need);
void add_log_prob_backward_scratch(const LinearSize& head, ScratchNeed& need);
// attention_backward() of documents that read at most so many keys.
void add_attention_backward_scratch(int64_t keys, int64_t head_dim, int64_t value_dim, ScratchNeed& need);
// draw_rows().
void add_draw_scratch(int64_t vocab, ScratchNeed& need);

}  // namespace collimate::tensor
