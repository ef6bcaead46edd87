#include "collimate/shape/family.h"
#include "collimate/shape/usual_config.h"
#include "collimate/shape/usual_windows.h"

namespace collimate::shape {
namespace {

// Reads the windows. Mistral has one in every block. Qwen2 and Qwen3 have one where use_sliding_window says so, in the
// blocks that layer_types name, or from block max_window_layers on.
void read_window(const Fields& fields, ModelShape& shape) {
  if (shape.family == "mistral") return set_windows(shape, read_window_or(fields, 4096), every_layer);
  if (!shape.family.starts_with("qwen")) return;
  const int64_t first = fields.whole_or("max_window_layers", kMaxLayers, 28);
  read_windows(fields, shape, read_qwen_window(fields), [first](int64_t layer) { return layer >= first; });
}

// Reads Llama (Touvron et al. 2023) and families that differ little from it: Mistral by a window; Qwen2 by biases of
// queries, keys and values; Qwen3 by norms of their heads. As in transformers, Qwen2 has those biases and Mistral none,
// whatever their configs say, and only Llama's MLPs have biases.
ModelShape parse_llama(const Fields& fields, const std::string& family) {
  ModelShape shape = read_usual_shape(fields, family);
  read_rope(fields, shape);
  read_window(fields, shape);
  fields.require("hidden_act", "silu");
  for (Block& block : shape.blocks) {
    block.attention.head_norm = family == "qwen3";
    if (family == "llama") continue;
    block.attention.bias = family == "qwen2" || (family == "qwen3" && block.attention.bias);
    block.attention.output_bias = family == "qwen3" && block.attention.bias;
    block.mlp.bias = false;
  }
  return shape;
}

void add_window(const ModelShape& shape, nlohmann::json& config) {
  add_window_size(shape, config);
  if (shape.family == "mistral") return;
  config["use_sliding_window"] = !config["sliding_window"].is_null();
  add_window_layers(shape, config);
}

void add_llama_config(const ModelShape& shape, nlohmann::json& config) {
  add_swiglu_config(shape, config);
  if (shape.family == "llama" || shape.family == "qwen3")
    config["attention_bias"] = shape.blocks.front().attention.bias;
  if (shape.family == "llama") config["mlp_bias"] = shape.blocks.front().mlp.bias;
  if (shape.family != "llama") add_window(shape, config);
}

Family member(const char* name, const std::string& classes) {
  return with_usual_keys(family_of(name, classes, parse_llama, add_llama_config, llama_names()));
}

}  // namespace

std::vector<Family> llama_families() {
  return {member("llama", "Llama"), member("mistral", "Mistral"), member("qwen2", "Qwen2"), member("qwen3", "Qwen3")};
}

}  // namespace collimate::shape
