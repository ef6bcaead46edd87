#pragma once

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "collimate/shape/block.h"

namespace collimate::shape {

// A BlockRange is blocks [first, end) of a model; by default all.
struct BlockRange {
  int64_t first = 0;
  int64_t end = INT64_MAX;
  bool has(int64_t block) const { return block >= first && block < end; }
};

enum class Head { kLanguageModel, kScore, kValue };

// A ModelShape holds what a decoder's config.json says about it, in one vocabulary for all families. Sizes are counts,
// not bytes.
struct ModelShape {
  std::string family;        // model_type in config.json
  std::string text_part_of;  // model_type of the model with images whose language model this is, or ""
  int64_t vocabulary = 0;
  int64_t hidden = 0;
  int64_t max_positions = 0;
  bool learned_positions = false;  // a table of max_positions rows is added to the embedding
  int64_t unused_positions = 0;    // rows of that table before position 0
  int64_t embedding_width = 0;     // of a table projected to the stream, as the stream is to the head; 0: hidden
  double embedding_scale = 1;      // factor of the embedding
  bool embedding_norm = false;     // a norm before the first block, of that block's kind
  std::vector<Block> blocks;       // by layer; the final norm is of the last one's kind
  // Blocks that are computed here (shape::local_shape), in ranges that other ranks' blocks lie between; all in a whole
  // model.
  std::vector<BlockRange> own_blocks = {BlockRange()};
  int64_t unused_blocks = 0;  // blocks that files hold behind these, and that nothing uses
  bool final_norm = true;
  bool tied_embeddings = false;
  bool head_bias = false;    // the language model's head has biases
  double logit_scale = 1;    // factor of the language model's logits
  double logit_softcap = 0;  // a logit x becomes softcap tanh(x / softcap); 0: logits stay as they are
  double rope_theta = 10000.0;
  nlohmann::json rope_scaling;  // null, or the "rope_scaling" object: linear, dynamic, llama3, yarn, longrope
  Head head = Head::kLanguageModel;
  std::vector<int64_t> eos_ids;
  int64_t bos_id = -1;
  int64_t pad_id = -1;

  int64_t layers() const { return static_cast<int64_t>(blocks.size()); }
  bool has_block(int64_t block) const {
    return std::ranges::any_of(own_blocks, [block](const BlockRange& range) { return range.has(block); });
  }
  // Returns how many positions a sequence may have: max_positions or, where a scaled rope reaches further, its factor
  // times max_positions, with YaRN its factor times the original positions.
  int64_t positions() const;
  // Returns the channels of a head that are rotated, in blocks with rotation; 0 where no block has it.
  int64_t turned() const {
    for (const Block& block : blocks)
      if (block.attention.turned() > 0) return block.attention.turned();
    return 0;
  }
  int64_t table_width() const { return embedding_width > 0 ? embedding_width : hidden; }  // of embedding and head
};

// Returns whether generation keeps latents in the cache instead of keys and values.
inline bool keeps_latents(const ModelShape& shape) {
  return !shape.blocks.empty() && shape.blocks.front().attention.latent.cached;
}
// Has generation keep latents. Throws InputError, which names `where`, for a model without latent attention.
void keep_latents(ModelShape& shape, const std::string& where);

// Parses a Hugging Face config.json. Throws InputError, which names file and key, for an unknown architecture and for
// missing or absurd numbers.
ModelShape parse_model_shape(const nlohmann::json& config, const std::string& where);
ModelShape read_model_shape(const std::string& directory);
// Returns a config.json that is read as this shape again, but for text_part_of and unused_blocks.
nlohmann::json to_config(const ModelShape& shape);

// known_families() returns the families that parse_model_shape knows. A head's name is "lm", "score" or "value".
const std::vector<std::string>& known_families();
// Throws InputError for any other name.
Head parse_head(const std::string& name);
const char* head_name(Head head);
// Throws InputError, which names `where`, for numbers that contradict each other, as heads that do not divide or an odd
// rotary dim.
void validate(const ModelShape& shape, const std::string& where);

}  // namespace collimate::shape
