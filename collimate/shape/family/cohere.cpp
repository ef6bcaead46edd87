#include <algorithm>

#include "collimate/shape/family.h"
#include "collimate/shape/usual_config.h"
#include "collimate/shape/usual_windows.h"

namespace collimate::shape {
namespace {

using nlohmann::json;

// Reads Command R (Cohere 2024), Aya 23 and Expanse: both halves read one norm without biases, neighbouring channels
// rotate together, and logits have a factor. Command R+ also has layer norms of the heads of queries and keys, each
// head with weights of its own. In Command R7B and A (Cohere 2025) three of four layers have a window, and only these
// rotate.
ModelShape parse_cohere(const Fields& fields, const std::string& family) {
  const bool second = family == "cohere2";
  ModelShape shape = read_swiglu_shape(fields, family, {.theta = second ? 1e4 : 5e5, .positions = 8192, .tied = true});
  const bool normed = !second && fields.flag_or("use_qk_norm", false);
  // In Command R of 2024, model_max_length says for which length it was trained.
  if (!second) shape.max_positions = std::max(shape.max_positions, fields.count_or("model_max_length", kMaxCount, 1));
  shape.logit_scale = fields.real_or("logit_scale", 0.0625);
  for (Block& block : shape.blocks) {
    read_layer_norm(fields, "layer_norm_eps", block);
    block.norm = NormKind::kLayerUnbiased;
    block.parallel = block.shared_norm = true;
    block.mlp.bias = false;
    block.attention.head_norm = block.attention.norm_by_head = normed;
  }
  if (!second) return shape;
  const int64_t step = fields.count_or("sliding_window_pattern", kMaxLayers, 4);
  read_turning_windows(fields, shape, read_window_or(fields, 4096),
                       [step](int64_t layer) { return (layer + 1) % step != 0; });
  return shape;
}

void add_cohere_config(const ModelShape& shape, json& config) {
  const Block& block = shape.blocks.front();
  add_swiglu_config(shape, config);
  add_layer_norm(block, "layer_norm_eps", config);
  config["logit_scale"] = shape.logit_scale;
  config["attention_bias"] = block.attention.bias;
  if (shape.family == "cohere2")
    add_turning_windows(shape, config);
  else
    config["use_qk_norm"] = block.attention.head_norm;
}

}  // namespace

std::vector<Family> cohere_families() {
  const ModuleNames names = paired(llama_names());
  return {family_of("cohere", "Cohere", parse_cohere, add_cohere_config, names),
          family_of("cohere2", "Cohere2", parse_cohere, add_cohere_config, names)};
}

}  // namespace collimate::shape
