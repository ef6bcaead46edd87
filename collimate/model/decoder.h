#pragma once

#include <optional>
#include <vector>

#include "collimate/base/at.h"
#include "collimate/model/experts.h"
#include "collimate/model/latent.h"

namespace collimate::model {

// Runs the segments of a decoder of any family over one Weights, as the shape's blocks describe them. A segment maps
// the residual stream [T, H] to the stream, the last one to the hidden states that the head reads. A Decoder holds
// indices of parameters only.
class Decoder {
 public:
  explicit Decoder(const Weights& weights);

  int segments() const { return static_cast<int>(blocks_.size()) + 2; }  // embedding, blocks, last norm
  // This rank runs segments [first, end) of each of its runs, which are several where a pipeline is interleaved.
  int runs() const { return static_cast<int>(runs_.size()); }
  int first_segment(int run) const { return base::at(runs_, run).first; }
  int end_segment(int run) const { return base::at(runs_, run).end; }
  bool begins(int run) const { return first_segment(run) == 0; }
  bool ends(int run) const { return end_segment(run) == segments(); }
  bool ends() const { return ends(runs() - 1); }
  // Runs one segment and returns the stream behind it. `stream` is null for segment 0.
  Slot* run(Step& step, int segment, Slot* stream) const;
  // Returns whether any block turns its queries and keys by their positions (rotary embedding).
  bool rotary() const;

 private:
  // A block of the shape, with the indices of its layers' parameters.
  struct Block {
    shape::Block how;
    Norm attention_norm, behind_attention;  // how.place says which is used, here and for the MLP
    Linear query_key_value;                 // of plain attention, as are head_norms
    HeadNorms head_norms;
    int sinks = -1;
    Linear output;
    Norm mlp_norm, behind_mlp;
    Linear up, down;  // of a dense block
    std::optional<ExpertLayer> experts;
    std::optional<LatentLayer> latent;
  };
  // Returns what attend() reads: queries, keys and values of x, turned by their positions.
  static Slot* heads_of(Step& step, const Block& block, Slot* x);
  Slot* run_block(Step& step, const Block& block, Slot* stream) const;

  // A half of a block, attention or MLP, ends with its last layer and the norm behind it, if any. end_half() returns
  // the stream with what these make of x added, end_mixture() with what routed experts make of `read` added.
  struct HalfEnd {
    const shape::Block& how;
    const Linear& layer;
    const Norm& behind;
  };
  static Slot* end_mixture(Step& step, const Block& block, Slot* read, Slot* stream);
  static Slot* end_half(Step& step, const HalfEnd& half, Slot* x, Slot* stream);
  Slot* begin(Step& step) const;
  Slot* end(Step& step, Slot* stream) const;

  struct Segments {
    int first = 0, end = 0;
  };
  std::vector<Segments> runs_;
  int embedding_ = -1, positions_ = -1;
  std::optional<Norm> embedding_norm_;
  std::optional<Linear> project_in_, project_out_;
  int64_t unused_positions_ = 0;
  int routers_ = 0;
  float embedding_scale_ = 1;
  std::vector<Block> blocks_;
  std::optional<Norm> final_norm_;
  float logit_scale_ = 1;
};

}  // namespace collimate::model
