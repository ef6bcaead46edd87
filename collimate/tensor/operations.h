#pragma once

#include "collimate/tensor/ops/activation.h"
#include "collimate/tensor/ops/attention.h"
#include "collimate/tensor/ops/columns.h"
#include "collimate/tensor/ops/dropout.h"
#include "collimate/tensor/ops/embedding.h"
#include "collimate/tensor/ops/experts.h"
#include "collimate/tensor/ops/linear.h"
#include "collimate/tensor/ops/listed.h"
#include "collimate/tensor/ops/log_prob.h"
#include "collimate/tensor/ops/memory.h"
#include "collimate/tensor/ops/norm.h"
#include "collimate/tensor/ops/optimizer.h"
#include "collimate/tensor/ops/rope.h"
#include "collimate/tensor/ops/sample.h"

// This list names every operation of a device once: EACH(name) stands for a function that a header of ops/ declares.
// clang-format off
#define COLLIMATE_OPERATIONS(EACH) \
  EACH(copy) EACH(copy_in) EACH(copy_out) EACH(zero) EACH(gather_rows) EACH(copy_heads) EACH(add_heads) \
  EACH(fingerprint) \
  EACH(silu_mul) EACH(silu_mul_backward) EACH(gelu_tanh_mul) EACH(gelu_tanh_mul_backward) EACH(gelu_tanh) \
  EACH(bounded_swish_mul) EACH(bounded_swish_mul_backward) \
  EACH(gelu_tanh_backward) EACH(gelu) EACH(gelu_backward) EACH(relu) EACH(relu_backward) EACH(relu_squared) \
  EACH(relu_squared_backward) EACH(sigmoid) EACH(sigmoid_backward) \
  EACH(add) EACH(add_bias) EACH(scale_columns) EACH(add_column_dots) EACH(dropout) \
  EACH(embedding) EACH(embedding_backward) EACH(rope) EACH(rope_backward) \
  EACH(rms_norm) EACH(rms_norm_backward) EACH(head_norm) EACH(head_norm_backward) EACH(layer_norm) EACH(layer_norm_backward) \
  EACH(packed_bytes) EACH(prepare_panels) EACH(pack_linear_rows) EACH(linear) EACH(linear_grad_input) \
  EACH(linear_grad_weight) \
  EACH(route) EACH(replay_routes) EACH(route_backward) EACH(measure_routes) EACH(sort_by_expert) EACH(expert_linear) \
  EACH(expert_grad_input) EACH(expert_grad_weight) EACH(add_expert_bias) EACH(expert_grad_bias) EACH(combine_experts) EACH(combine_experts_backward) \
  EACH(kv_block_floats) EACH(copy_kv_block) EACH(append_kv) EACH(read_kv) EACH(round_bf16) \
  EACH(attention_forward) EACH(attention_backward) EACH(attention_sinks_backward) \
  EACH(log_softmax_gather) EACH(log_softmax_gather_backward) EACH(part_logits) EACH(part_sums) EACH(part_listed) \
  EACH(part_likely) EACH(soft_cap) EACH(draw_rows) \
  EACH(adamw) EACH(squares_of_chunks) EACH(scale) EACH(move_towards) EACH(exchange)
// clang-format on

namespace collimate::tensor {

// Operations is a device's table of functions, with the names and contracts of the functions that the headers above
// declare; these call the entry of the device that their Exec names.
struct Operations {
#define COLLIMATE_ENTRY(name) decltype(&tensor::name) name;  // NOLINT(bugprone-macro-parentheses): a declaration
  COLLIMATE_OPERATIONS(COLLIMATE_ENTRY)
#undef COLLIMATE_ENTRY
};

// The CPU's functions are defined in the sources of ops/, each in the source named as the header that declares it.
namespace cpu {
#define COLLIMATE_DECLARE(name) decltype(tensor::name) name;  // NOLINT(bugprone-macro-parentheses)
COLLIMATE_OPERATIONS(COLLIMATE_DECLARE)
#undef COLLIMATE_DECLARE
}  // namespace cpu

}  // namespace collimate::tensor
