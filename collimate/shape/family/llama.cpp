#include "collimate/base/at.h"
#include "collimate/shape/family.h"
#include "collimate/shape/usual_config.h"

namespace collimate::shape {
namespace {

// Mistral has a window in every block, Qwen's later models in those from max_window_layers on, where they say so.
void read_window(const Fields& fields, ModelShape& shape) {
  const bool is_mistral = shape.family == "mistral", is_qwen = shape.family.starts_with("qwen");
  if (!fields.has("sliding_window") || !(is_mistral || (is_qwen && fields.flag_or("use_sliding_window", false))))
    return;
  const int64_t window = fields.count("sliding_window", kMaxCount);
  const int64_t first = is_mistral ? 0 : fields.whole_or("max_window_layers", kMaxLayers, 28);
  for (int64_t layer = first; layer < shape.layers(); ++layer)
    if (window < shape.max_positions) base::at(shape.blocks, layer).attention.window = window;
}

// Llama (Touvron et al. 2023), and those that differ from it by little: Mistral by a window; Qwen2 by biases of
// queries, keys and values, whatever its config says; Qwen3 by norms of their heads. Only Llama has other biases.
ModelShape parse_llama(const Fields& fields, const std::string& family) {
  ModelShape shape = read_usual_shape(fields, family);
  read_rope(fields, shape);
  read_window(fields, shape);
  fields.require("hidden_act", "silu");
  for (Block& block : shape.blocks) {
    block.attention.head_norm = family == "qwen3";
    if (family == "llama") continue;
    block.attention.bias = family == "qwen2" || block.attention.bias;
    block.attention.output_bias = family == "qwen3" && block.attention.bias;
    block.mlp.bias = false;
  }
  return shape;
}

void add_window(const ModelShape& shape, nlohmann::json& config) {
  int64_t first = 0;
  while (first < shape.layers() && base::at(shape.blocks, first).attention.window == 0) ++first;
  config["sliding_window"] = nullptr;
  if (shape.family != "mistral") config["use_sliding_window"] = first < shape.layers();
  if (first == shape.layers()) return;
  config["sliding_window"] = shape.blocks.back().attention.window;
  if (shape.family != "mistral") config["max_window_layers"] = first;
}

void add_llama_config(const ModelShape& shape, nlohmann::json& config) {
  add_usual_config(shape, config);
  config["hidden_act"] = "silu";
  if (shape.family == "llama" || shape.family == "qwen3")
    config["attention_bias"] = shape.blocks.front().attention.bias;
  if (shape.family == "llama") config["mlp_bias"] = shape.blocks.front().mlp.bias;
  if (shape.family != "llama") add_window(shape, config);
}

Family member(const char* name, const std::string& classes) {
  return {name,
          classes + "ForCausalLM",
          classes + "ForSequenceClassification",
          parse_llama,
          add_llama_config,
          llama_names(),
          /*has_usual_keys=*/true};
}

}  // namespace

std::vector<Family> llama_families() {
  return {member("llama", "Llama"), member("mistral", "Mistral"), member("qwen2", "Qwen2"), member("qwen3", "Qwen3")};
}

}  // namespace collimate::shape
