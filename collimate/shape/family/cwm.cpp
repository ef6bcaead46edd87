#include "collimate/shape/family.h"
#include "collimate/shape/usual_config.h"
#include "collimate/shape/usual_windows.h"

namespace collimate::shape {
namespace {

using nlohmann::json;

// Sets the rope of a Code World Model whose config has none, whatever base the config names.
void set_default_rope(ModelShape& shape) {
  shape.rope_theta = 1e6;
  shape.rope_scaling = {{"rope_type", "llama3"},
                        {"factor", 16.0},
                        {"low_freq_factor", 1.0},
                        {"high_freq_factor", 4.0},
                        {"original_max_position_embeddings", 8192.0}};
}

// Reads Ministral 8B (Mistral AI 2024), a Mistral in which layer_types name the layers with a window, and Code World
// Model (Meta 2025), a Llama with windows in three of four layers.
ModelShape parse_windowed(const Fields& fields, const std::string& family) {
  const bool world = family == "cwm";
  ModelShape shape = read_swiglu_shape(
      fields, family, {.theta = world ? 1e6 : 1e4, .positions = 131072, .epsilon = world ? 1e-5 : 1e-6});
  if (world && !fields.has("rope_scaling") && !fields.has("rope_parameters")) set_default_rope(shape);
  read_windows(fields, shape, read_window_or(fields, world ? 8192 : 4096),
               [world](int64_t layer) { return !world || layer % 4 != 0; });
  for (Block& block : shape.blocks) {
    block.attention.bias = block.attention.output_bias = false;
    block.mlp.bias = world && block.mlp.bias;
  }
  return shape;
}

void add_windowed_config(const ModelShape& shape, json& config) {
  add_swiglu_config(shape, config);
  if (shape.family == "cwm") {
    config["mlp_bias"] = shape.blocks.front().mlp.bias;
    if (shape.rope_scaling.is_null()) config["rope_scaling"] = {{"rope_type", "default"}};
  }
  add_all_layer_types(shape, config);
}

}  // namespace

std::vector<Family> cwm_families() {
  return {with_usual_keys(family_of("cwm", "Cwm", parse_windowed, add_windowed_config, llama_names())),
          with_usual_keys(family_of("ministral", "Ministral", parse_windowed, add_windowed_config, llama_names()))};
}

}  // namespace collimate::shape
