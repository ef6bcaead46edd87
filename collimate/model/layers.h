#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "collimate/model/lora.h"
#include "collimate/model/model.h"
#include "collimate/model/step_input.h"
#include "collimate/model/weights.h"
#include "collimate/tensor/ops/attention.h"
#include "collimate/tensor/ops/rope.h"
#include "collimate/tensor/tape.h"

namespace collimate::model {

class RouterChoices;
class RouterNotes;

// These tables turn the queries and keys of blocks: `own` those of blocks with a rope base of their own, `common` all
// others, as the model's rope says.
struct Turns {
  tensor::RopeTable common, own;
  const tensor::RopeTable& of(const shape::Attention& attention) const {
    return attention.rope_theta > 0 ? own : common;
  }
};

// In this memory a pass makes, for a while, what is not kept between forward and backward. The struct belongs to
// Passes, where forward and backward of a record both find it; each of them sets it to memory of its own.
struct Scratch {
  tensor::Arena* arena = nullptr;
  tensor::Arena* gradients = nullptr;
  float* kv_storage = nullptr;
};

// A step is one pass of T rows through one segment. With a tape every layer keeps what its backward needs in `arena`
// and pushes that backward on the tape; without one, layers update the residual stream in place and everything in
// `arena` is scratch.
struct Step {
  const tensor::Exec& exec;
  Weights& weights;
  tensor::Arena& arena;
  const StepInput& input;
  tensor::Tape* tape = nullptr;
  tensor::KvType kv_type = tensor::KvType::kFloat32;      // of what kv_storage holds
  float* kv_storage = nullptr;                            // blocks of this layer
  tensor::KvType latent_type = tensor::KvType::kFloat32;  // of what latent_storage holds
  float* latent_storage = nullptr;  // latents of this layer, where a cache keeps them; kv_storage then is for any layer
  std::span<const tensor::AttentionRun> earlier = {};  // StepInput::earlier_blocks(), where a cache keeps latents
  const Turns* turns = nullptr;                        // null: no block is rotary
  RouterNotes* routers = nullptr;                      // of a mixture in training; null: nobody asks
  RouterChoices* choices = nullptr;                    // of a mixture; null: nobody asks
  const Scratch* again = nullptr;                      // where MadeAgain makes slots again; null: slots are kept

  int64_t rows() const { return input.rows(); }
};

using tensor::Slot;

// Layers hold indices of parameters, never tensors, so that weights may move between passes.
struct Norm {
  int weight = -1;
  int bias = -1;  // -1: none
  float epsilon = 1e-5F;
  float offset = 0;      // added to the norm's weights
  bool centred = false;  // layer norm, else RMS norm
};
// These norms of queries and keys are taken over each head, or over all heads together.
struct HeadNorms {
  int query = -1, key = -1;  // -1: none
  float epsilon = 1e-5F;
  float offset = 0;
  bool centred = false;
};
struct Linear {
  int weight = -1;  // the first of a fused group
  int bias = -1;    // -1: none
  int64_t in = 0, out = 0;
  std::shared_ptr<const LoraLayer> lora = nullptr;  // null: no adapters
  int cut = -1;                                     // its weights' ParamSpec::cut
};
using shape::Attention;

// Finds the linear layer or norm of a segment: weights and, where there is one, bias.
Linear find_linear(const Weights& weights, shape::Part part, int segment);
float norm_offset(const shape::Block& block);  // Norm::offset of the block's norms
Norm find_norm(const Weights& weights, shape::Part part, int segment, const shape::Block& block);

// Returns the biases [out] of a layer; null where it has none.
const float* bias_of(Weights& weights, const Linear& layer);

// Returns the tokens' rows of parameter `table`, times `scale`: [T, width of the table].
Slot* embed(Step& step, int table, float scale = 1);
// Adds the positions' rows of parameter `table` to `embedded`, in place. Position 0 has row `unused` of the table.
Slot* add_positions(Step& step, int table, int64_t unused, Slot* embedded);
Slot* normalize(Step& step, const Norm& norm, Slot* x);
// Returns x for layers of which each tensor rank has some outputs: the backward sums the gradients of the ranks' parts.
Slot* spread(Step& step, Slot* x);
// Returns what normalize() returns, where it becomes the stream: in the same slot, in place, without a tape.
Slot* normalize_stream(Step& step, const Norm& norm, Slot* stream);
Slot* linear(Step& step, const Linear& layer, Slot* x);
// Returns the slot in which something is added to the stream: the stream itself without a tape, else a copy.
Slot* stream_to_add_to(Step& step, Slot* stream, bool wanted);
// Returns a slot of zeros, which wants no gradient.
Slot* zero_slot(Step& step, int64_t rows, int64_t width);
// Returns stream + linear(x): in the slot of `stream` without a tape, in a new one with a tape.
Slot* add_linear(Step& step, const Linear& layer, Slot* x, Slot* stream);
// Passes the gradient of a sum's output on to its input: as the same memory when nothing has flowed into it yet.
void pass_through(const tensor::Exec& exec, tensor::Tape& tape, Slot& out, Slot& in);
// Returns stream + norm(x), in a slot as add_linear.
Slot* add_normalized(Step& step, const Norm& norm, Slot* x, Slot* stream);
// Returns stream + factor x, in a slot as add_linear. Scales x in place: x may have no other reader, and nothing may
// read its value again.
Slot* add_scaled(Step& step, float factor, Slot* x, Slot* stream);
// Multiplies x by `factor` in place. x has one reader behind this, and the backward of what made x must not read it.
void scale(Step& step, float factor, Slot* x);
// Returns qkv, laid out as for attend(), with the heads of its queries and keys normalised and its values as they are.
Slot* normalize_heads(Step& step, const HeadNorms& norms, const Attention& attention, Slot* qkv);
// Turns the leading channels of the first `heads` heads of x, each of head_dim channels, by the tokens' positions, in
// place. x has one reader behind this.
void turn(Step& step, const Attention& attention, Slot* x, int64_t heads, int64_t head_dim);
// Appends k and v of qkv [T, heads head_dim + kv_heads (head_dim + value_dim)] to the step's blocks and attends.
// Returns [T, heads value_dim]. `sinks` is the index of a parameter [heads]; -1: there are none.
Slot* attend(Step& step, const Attention& attention, Slot* qkv, int sinks = -1);
// Returns the activation [T, F] of an MLP, from x [T, F] or from gate and up side by side [T, 2 F].
Slot* activate(Step& step, const shape::Mlp& mlp, Slot* x);
Slot* sigmoid(Step& step, Slot* x);

}  // namespace collimate::model
