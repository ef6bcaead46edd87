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

// How the queries and keys of blocks turn: as the model's rope says, and of those with a base of their own.
struct Turns {
  tensor::RopeTable common, own;
  const tensor::RopeTable& of(const shape::Attention& attention) const {
    return attention.rope_theta > 0 ? own : common;
  }
};

// Where a pass makes for a while what is not kept between forward and backward. Passes has it: forward and backward of
// a record find it in one place, each with memory of its own.
struct Scratch {
  tensor::Arena* arena = nullptr;
  tensor::Arena* gradients = nullptr;
  float* kv_storage = nullptr;
};

// One pass through one segment. T rows. With a tape every layer keeps what its backward needs in `arena` and pushes
// that backward; without one, the residual stream is updated in place and everything in `arena` is scratch.
struct Step {
  const tensor::Exec& exec;
  Weights& weights;
  tensor::Arena& arena;
  const StepInput& input;
  tensor::Tape* tape = nullptr;
  tensor::KvType kv_type = tensor::KvType::kFloat32;      // of what kv_storage holds
  float* kv_storage = nullptr;                            // blocks of this layer
  tensor::KvType latent_type = tensor::KvType::kFloat32;  // of what latent_storage holds
  float* latent_storage = nullptr;  // the same of latents, where a cache keeps those: the other then is for any layer
  std::span<const tensor::AttentionRun> earlier = {};  // StepInput::earlier_blocks(), where a cache keeps latents
  const Turns* turns = nullptr;                        // where a block is rotary
  RouterNotes* routers = nullptr;                      // of a mixture in training; null: nobody asks
  RouterChoices* choices = nullptr;                    // of a mixture; null: nobody asks
  const Scratch* again = nullptr;                      // MadeAgain is made again in it; null: it is kept

  int64_t rows() const { return input.rows(); }
};

using tensor::Slot;

// Layers hold indices of parameters, never tensors, so that weights may move between passes.
struct Norm {
  int weight = -1;
  int bias = -1;  // -1: none
  float epsilon = 1e-5F;
  float offset = 0;      // added to its weights
  bool centred = false;  // layer norm, else RMS norm
};
// Norms of queries and keys: of each head, or of all together.
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
float norm_offset(const shape::Block& block);  // of its norms: added to their weights
Norm find_norm(const Weights& weights, shape::Part part, int segment, const shape::Block& block);

// The biases [out] of a layer; null where it has none.
const float* bias_of(Weights& weights, const Linear& layer);

// The tokens' rows of a table, times `scale`: [T, width of the table].
Slot* embed(Step& step, int table, float scale = 1);
// Adds the positions' rows to what embeds the tokens, in place. Position 0 is in the row behind `unused` ones.
Slot* add_positions(Step& step, int table, int64_t unused, Slot* embedded);
Slot* normalize(Step& step, const Norm& norm, Slot* x);
// x for layers of which each tensor rank has some outputs: its gradient is the sum of what the ranks' parts give.
Slot* spread(Step& step, Slot* x);
// As normalize, where the stream goes on: the same slot without a tape.
Slot* normalize_stream(Step& step, const Norm& norm, Slot* stream);
Slot* linear(Step& step, const Linear& layer, Slot* x);
// Where something is added to the stream: the stream itself without a tape, else a copy.
Slot* stream_to_add_to(Step& step, Slot* stream, bool wanted);
// Zeros, which have no gradient.
Slot* zero_slot(Step& step, int64_t rows, int64_t width);
// stream + linear(x): the same slot as `stream` without a tape, a new one with a tape.
Slot* add_linear(Step& step, const Linear& layer, Slot* x, Slot* stream);
// The gradient of a sum's output becomes that of its input: the same memory when nothing else has flowed in yet.
void pass_through(const tensor::Exec& exec, tensor::Tape& tape, Slot& out, Slot& in);
// stream + norm(x): as add_linear.
Slot* add_normalized(Step& step, const Norm& norm, Slot* x, Slot* stream);
// stream + factor x: as add_linear. x has no other reader, and nothing behind it reads its value.
Slot* add_scaled(Step& step, float factor, Slot* x, Slot* stream);
// factor x, in place; x has one reader behind it, and what made it does not read it again.
void scale(Step& step, float factor, Slot* x);
// qkv as of attend: its queries' and keys' heads normalised, its values as they are.
Slot* normalize_heads(Step& step, const HeadNorms& norms, const Attention& attention, Slot* qkv);
// Turns the leading channels of x's first `heads` heads of `head_dim` by the tokens' positions, in place. x has one
// reader behind it.
void turn(Step& step, const Attention& attention, Slot* x, int64_t heads, int64_t head_dim);
// qkv [T, heads head_dim + kv_heads (head_dim + value_dim)]: appends k and v to the step's blocks and attends.
// [T, heads value_dim]. `sinks`: a parameter [heads]; -1 without.
Slot* attend(Step& step, const Attention& attention, Slot* qkv, int sinks = -1);
// The activation of an MLP: x [T, F], or gate and up [T, 2 F] -> [T, F].
Slot* activate(Step& step, const shape::Mlp& mlp, Slot* x);
Slot* sigmoid(Step& step, Slot* x);

}  // namespace collimate::model
