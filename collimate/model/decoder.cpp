#include "collimate/model/decoder.h"

#include <algorithm>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/model/made_again.h"

namespace collimate::model {

using shape::Part;

namespace {

// Returns the norm behind a half. It has part `only` if it is the half's one norm, `other` if another norm is ahead.
Norm find_behind(const Weights& weights, Part only, Part other, int segment, const shape::Block& block) {
  if (block.place == shape::NormPlace::kBefore) return {};
  return find_norm(weights, block.place == shape::NormPlace::kAround ? other : only, segment, block);
}

// Refuses combinations that no family has and no test covers.
void check(const shape::ModelShape& shape, const shape::Block& block) {
  COLLIMATE_CHECK(block.place == shape::NormPlace::kBefore || block.mlp.experts.count == 0, "{}", shape.family);
  COLLIMATE_CHECK(block.added_scale == 1 || block.place != shape::NormPlace::kAfter, "{}", shape.family);
  COLLIMATE_CHECK(shape.logit_scale == 1 || shape.final_norm, "{}", shape.family);
}

}  // namespace

Decoder::Decoder(const Weights& weights) {
  const shape::ModelShape& shape = weights.shape();
  embedding_ = weights.index_of(Part::kEmbedding, 0);
  positions_ = weights.index_of(Part::kPositions, 0);
  unused_positions_ = shape.unused_positions;
  embedding_scale_ = static_cast<float>(shape.embedding_scale);
  if (shape.head == shape::Head::kLanguageModel) logit_scale_ = static_cast<float>(shape.logit_scale);
  for (const shape::Block& block : shape.blocks) {
    check(shape, block);
    const int segment = static_cast<int>(blocks_.size()) + 1;
    const bool latent = block.attention.latent.kv_rank > 0;
    blocks_.push_back(
        {block,
         find_norm(weights, Part::kAttentionNorm, segment, block),
         find_behind(weights, Part::kAttentionNorm, Part::kBehindAttention, segment, block),
         latent ? Linear{} : find_linear(weights, Part::kQueryKeyValue, segment),
         {weights.index_of(Part::kQueryNorm, segment), weights.index_of(Part::kKeyNorm, segment), block.norm_epsilon,
          norm_offset(block), block.attention.norm_by_head && shape::is_centred(block.norm)},
         weights.index_of(Part::kSinks, segment, /*bias=*/true),
         find_linear(weights, Part::kAttentionOutput, segment),
         block.shared_norm ? Norm{} : find_norm(weights, Part::kMlpNorm, segment, block),
         find_behind(weights, Part::kMlpNorm, Part::kBehindMlp, segment, block)});
    if (latent) blocks_.back().latent = find_latent(weights, segment);
    if (block.mlp.experts.count > 0) {
      blocks_.back().experts = find_experts(weights, segment, routers_++);
    } else {
      blocks_.back().up = find_linear(weights, Part::kUp, segment);
      blocks_.back().down = find_linear(weights, Part::kDown, segment);
    }
  }
  if (shape.embedding_norm) embedding_norm_ = find_norm(weights, Part::kEmbeddingNorm, 0, shape.blocks.front());
  if (shape.final_norm) final_norm_ = find_norm(weights, Part::kFinalNorm, segments() - 1, shape.blocks.back());
  for (const shape::BlockRange& blocks : shape.own_blocks)
    runs_.push_back({static_cast<int>(blocks.first) + 1, static_cast<int>(blocks.end) + 1});
  if (weights.stages().place.is_first()) runs_.front().first = 0;
  if (weights.stages().place.is_last()) runs_.back().end = segments();
  if (shape.embedding_width == 0) return;
  project_in_ = find_linear(weights, Part::kProjectIn, 0);
  project_out_ = find_linear(weights, Part::kProjectOut, segments() - 1);
}

Slot* Decoder::run(Step& step, int segment, Slot* stream) const {
  if (segment == 0) return begin(step);
  if (segment + 1 == segments()) return end(step, stream);
  return run_block(step, base::at(blocks_, segment - 1), stream);
}

Slot* Decoder::begin(Step& step) const {
  Slot* stream = embed(step, embedding_, embedding_scale_);
  if (project_in_) stream = linear(step, *project_in_, stream);
  if (positions_ >= 0) stream = add_positions(step, positions_, unused_positions_, stream);
  return embedding_norm_ ? normalize(step, *embedding_norm_, stream) : stream;
}

Slot* Decoder::end(Step& step, Slot* stream) const {
  if (final_norm_) stream = normalize(step, *final_norm_, stream);
  if (logit_scale_ != 1) scale(step, logit_scale_, stream);  // scales all logits alike
  return project_out_ ? linear(step, *project_out_, stream) : stream;
}

Slot* Decoder::heads_of(Step& step, const Block& block, Slot* x) {
  if (block.latent) return latent_heads(step, *block.latent, x);
  const Attention& how = block.how.attention;
  Slot* qkv = linear(step, block.query_key_value, spread(step, x));
  if (how.head_norm && !how.norm_behind_turn) qkv = normalize_heads(step, block.head_norms, how, qkv);
  if (how.rotary) turn(step, how, qkv, how.heads + how.kv_heads, how.head_dim);
  return how.head_norm && how.norm_behind_turn ? normalize_heads(step, block.head_norms, how, qkv) : qkv;
}

Slot* Decoder::run_block(Step& step, const Block& block, Slot* stream) const {
  const bool before = shape::has_norm_ahead(block.how.place);
  Slot* read = before ? normalize(step, block.attention_norm, stream) : stream;
  Slot* heads = heads_of(step, block, read);
  MadeAgain attended(step, [&block, heads](Step& s) { return attend(s, block.how.attention, heads, block.sinks); });
  // A parallel MLP too reads the normalized stream as it came; else the MLP reads it with what attention adds.
  if (block.how.parallel && !block.how.shared_norm) read = normalize(step, block.mlp_norm, stream);
  stream = end_half(step, {block.how, block.output, block.behind_attention}, attended.slot(), stream);
  attended.has_been_read(step);
  if (!block.how.parallel) read = before ? normalize(step, block.mlp_norm, stream) : stream;
  if (block.experts) return end_mixture(step, block, read, stream);
  Slot* inner = linear(step, block.up, spread(step, read));
  MadeAgain activated(step, [&block, inner](Step& s) { return activate(s, block.how.mlp, inner); });
  stream = end_half(step, {block.how, block.down, block.behind_mlp}, activated.slot(), stream);
  activated.has_been_read(step);
  return stream;
}

Slot* Decoder::end_mixture(Step& step, const Block& block, Slot* read, Slot* stream) {
  const auto factor = static_cast<float>(block.how.added_scale);
  if (factor == 1) return add_experts(step, *block.experts, read, stream);
  Slot* made = zero_slot(step, stream->rows, stream->width);
  return add_scaled(step, factor, add_experts(step, *block.experts, read, made), stream);
}

Slot* Decoder::end_half(Step& step, const HalfEnd& half, Slot* x, Slot* stream) {
  const auto factor = static_cast<float>(half.how.added_scale);
  const bool behind = shape::has_norm_behind(half.how.place);
  if (factor == 1 && !behind) {
    stream = add_linear(step, half.layer, x, stream);
    return half.how.place == shape::NormPlace::kAfter ? normalize_stream(step, half.behind, stream) : stream;
  }
  Slot* made = linear(step, half.layer, x);
  if (factor == 1) return add_normalized(step, half.behind, made, stream);
  return add_scaled(step, factor, behind ? normalize(step, half.behind, made) : made, stream);
}

bool Decoder::rotary() const {
  return std::any_of(blocks_.begin(), blocks_.end(), [](const Block& block) { return block.how.attention.rotary; });
}

}  // namespace collimate::model
