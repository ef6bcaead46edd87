#pragma once

#include <optional>
#include <vector>

#include "collimate/model/experts.h"
#include "collimate/model/latent.h"

namespace collimate::model {

// A decoder of any family over one Weights: what each segment computes, as the shape's blocks say. A segment maps the
// residual stream [T, H] to the stream; the last one to the hidden states that the head reads. Holds indices of
// parameters only.
class Decoder {
 public:
  explicit Decoder(const Weights& weights);

  int segments() const { return static_cast<int>(blocks_.size()) + 2; }  // embedding, blocks, last norm
  // This rank's stage runs segments [first, end).
  int first_segment() const { return first_; }
  int end_segment() const { return end_; }
  bool begins() const { return first_ == 0; }
  bool ends() const { return end_ == segments(); }
  // `stream`: null for the first segment of all.
  Slot* run(Step& step, int segment, Slot* stream) const;
  // Whether the queries and keys of any block turn by their positions.
  bool rotary() const;

 private:
  // A block, and where its layers' parameters are.
  struct Block {
    shape::Block how;
    Norm attention_norm, behind_attention;  // as the block's place says
    Linear query_key_value;                 // of plain attention, as the next
    HeadNorms head_norms;
    int sinks = -1;
    Linear output;
    Norm mlp_norm, behind_mlp;
    Linear up, down;  // of a dense block
    std::optional<ExpertLayer> experts;
    std::optional<LatentLayer> latent;
  };
  // Gives what attends: queries, keys and values of x, turned.
  static Slot* heads_of(Step& step, const Block& block, Slot* x);
  Slot* run_block(Step& step, const Block& block, Slot* stream) const;

  // The stream with what a half's last layer makes of x, and the norm behind it.
  struct HalfEnd {
    const shape::Block& how;
    const Linear& layer;
    const Norm& behind;
  };
  static Slot* end_mixture(Step& step, const Block& block, Slot* read, Slot* stream);
  static Slot* end_half(Step& step, const HalfEnd& half, Slot* x, Slot* stream);
  Slot* begin(Step& step) const;
  Slot* end(Step& step, Slot* stream) const;

  int first_ = 0, end_ = 0;
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
