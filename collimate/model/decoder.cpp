#include "collimate/model/decoder.h"

#include <algorithm>

#include "collimate/base/at.h"
#include "collimate/base/error.h"

namespace collimate::model {

using shape::Part;

Decoder::Decoder(const Weights& weights) {
  const shape::ModelShape& shape = weights.shape();
  embedding_ = weights.index_of(Part::kEmbedding, 0);
  positions_ = weights.index_of(Part::kPositions, 0);
  unused_positions_ = shape.unused_positions;
  for (const shape::Block& block : shape.blocks) {
    const int segment = static_cast<int>(blocks_.size()) + 1;
    COLLIMATE_CHECK(block.attention.latent.kv_rank == 0, "{}", shape.family);
    blocks_.push_back(
        {block,
         find_norm(weights, Part::kAttentionNorm, segment, block),
         find_linear(weights, Part::kQueryKeyValue, segment),
         {weights.index_of(Part::kQueryNorm, segment), weights.index_of(Part::kKeyNorm, segment), block.norm_epsilon},
         find_linear(weights, Part::kAttentionOutput, segment),
         block.shared_norm ? Norm{} : find_norm(weights, Part::kMlpNorm, segment, block)});
    if (block.mlp.experts.count > 0) {
      blocks_.back().experts = find_experts(weights, segment, routers_++);
    } else {
      blocks_.back().up = find_linear(weights, Part::kUp, segment);
      blocks_.back().down = find_linear(weights, Part::kDown, segment);
    }
  }
  final_norm_ = find_norm(weights, Part::kFinalNorm, segments() - 1, shape.blocks.back());
}

Slot* Decoder::run(Step& step, int segment, Slot* stream) const {
  if (segment == 0) return embed(step, embedding_, positions_, unused_positions_);
  if (segment + 1 == segments()) return normalize(step, final_norm_, stream);
  return run_block(step, base::at(blocks_, segment - 1), stream);
}

Slot* Decoder::run_block(Step& step, const Block& block, Slot* stream) const {
  Slot* read = normalize(step, block.attention_norm, stream);
  Slot* qkv = linear(step, block.query_key_value, read);
  if (block.how.attention.head_norm) qkv = normalize_heads(step, block.head_norms, block.how.attention, qkv);
  Slot* attended = attend(step, block.how.attention, qkv);
  // The MLP too reads the normalized stream as it came, or that with what attention adds.
  if (block.how.parallel && !block.how.shared_norm) read = normalize(step, block.mlp_norm, stream);
  stream = add_linear(step, block.output, attended, stream);
  if (!block.how.parallel) read = normalize(step, block.mlp_norm, stream);
  if (block.experts) return add_experts(step, *block.experts, read, stream);
  return add_linear(step, block.down, activate(step, block.how.mlp, linear(step, block.up, read)), stream);
}

bool Decoder::rotary() const {
  return std::any_of(blocks_.begin(), blocks_.end(), [](const Block& block) { return block.how.attention.rotary; });
}

}  // namespace collimate::model
