#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "collimate/shape/block.h"

namespace collimate::shape {

// Blocks [first, end) of a model; by default all.
struct BlockRange {
  int64_t first = 0;
  int64_t end = INT64_MAX;
  bool has(int64_t block) const { return block >= first && block < end; }
};

enum class Head { kLanguageModel, kScore, kValue };

// Everything about a decoder that its config.json says, in one vocabulary for all families. Counts, not bytes.
struct ModelShape {
  std::string family;        // model_type of config.json
  std::string text_part_of;  // that of a model that reads images too, of which this is the language model; or ""
  int64_t vocabulary = 0;
  int64_t hidden = 0;
  int64_t max_positions = 0;
  bool learned_positions = false;  // a table of max_positions rows is added to the embedding
  int64_t unused_positions = 0;    // rows of that table ahead of position 0
  int64_t embedding_width = 0;     // of a table that is projected to the stream, and the stream to the head; 0: hidden
  double embedding_scale = 1;      // multiplies what the table gives
  bool embedding_norm = false;     // a norm ahead of the first block, of its kind
  std::vector<Block> blocks;       // by layer; the norm behind the last one is of its kind
  BlockRange own_blocks;           // those that are computed here (shape::local_shape); all of a whole model
  int64_t unused_blocks = 0;       // that files hold behind these, and no pass uses
  bool final_norm = true;
  bool tied_embeddings = false;
  bool head_bias = false;    // of the language model's head
  double logit_scale = 1;    // multiplies the language model's logits
  double logit_softcap = 0;  // a logit x becomes softcap tanh(x / softcap); 0: as it is
  double rope_theta = 10000.0;
  nlohmann::json rope_scaling;  // null, or the "rope_scaling" object: linear, dynamic, llama3, yarn, longrope
  Head head = Head::kLanguageModel;
  std::vector<int64_t> eos_ids;
  int64_t bos_id = -1;
  int64_t pad_id = -1;

  int64_t layers() const { return static_cast<int64_t>(blocks.size()); }
  // A sequence has at most so many: max_positions, or where a rope that is scaled reaches further, its factor times
  // these, and of YaRN times the original ones.
  int64_t positions() const;
  // Channels of a head that turn, of blocks whose heads do.
  int64_t turned() const {
    for (const Block& block : blocks)
      if (block.attention.turned() > 0) return block.attention.turned();
    return 0;
  }
  int64_t table_width() const { return embedding_width > 0 ? embedding_width : hidden; }  // of embedding and head
};

// Whether generation keeps latents, and has it keep them.
inline bool keeps_latents(const ModelShape& shape) {
  return !shape.blocks.empty() && shape.blocks.front().attention.latent.cached;
}
// InputError naming `where` for a model without them.
void keep_latents(ModelShape& shape, const std::string& where);

// Parses a Hugging Face config.json. Unknown architecture, missing or absurd numbers: InputError naming file and key.
ModelShape parse_model_shape(const nlohmann::json& config, const std::string& where);
ModelShape read_model_shape(const std::string& directory);
// The config.json that gives this shape back.
nlohmann::json to_config(const ModelShape& shape);

// Names of the families that parse_model_shape knows, and of a head: "lm", "score", "value".
const std::vector<std::string>& known_families();
// InputError on another name.
Head parse_head(const std::string& name);
const char* head_name(Head head);
// Contradictions between the numbers (heads that do not divide, an odd rotary dim …): InputError naming `where`.
void validate(const ModelShape& shape, const std::string& where);

}  // namespace collimate::shape
