#pragma once

#include <optional>
#include <vector>

#include "collimate/model/experts.h"

namespace collimate::model {

// A decoder of any family over one Weights: what each segment computes, as the shape's blocks say. A segment maps the
// residual stream [T, H] to the stream; the last one to the hidden states that the head reads. Holds indices of
// parameters only.
class Decoder {
 public:
  explicit Decoder(const Weights& weights);

  int segments() const { return static_cast<int>(blocks_.size()) + 2; }  // embedding, blocks, last norm
  // `stream`: null for the first segment.
  Slot* run(Step& step, int segment, Slot* stream) const;
  // Whether the queries and keys of any block turn by their positions.
  bool rotary() const;

 private:
  // A block, and where its layers' parameters are.
  struct Block {
    shape::Block how;
    Norm attention_norm;
    Linear query_key_value;
    HeadNorms head_norms;
    Linear output;
    Norm mlp_norm;
    Linear up, down;  // of a dense block
    std::optional<ExpertLayer> experts;
  };
  Slot* run_block(Step& step, const Block& block, Slot* stream) const;

  int embedding_ = -1, positions_ = -1;
  int64_t unused_positions_ = 0;
  int routers_ = 0;
  std::vector<Block> blocks_;
  Norm final_norm_;
};

}  // namespace collimate::model
