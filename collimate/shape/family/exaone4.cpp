#include <algorithm>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/shape/family.h"
#include "collimate/shape/usual_config.h"
#include "collimate/shape/usual_windows.h"

namespace collimate::shape {
namespace {

using nlohmann::json;

// Returns which layers have the window. The pattern is a number n, where every n-th layer has none, or a text of L
// (window) and G (none) that is repeated, where the last layer has none either.
LayerRule read_pattern(const Fields& fields, int64_t layers) {
  constexpr const char* kKey = "sliding_window_pattern";
  if (!fields.has(kKey) || !fields.raw(kKey).is_string()) {
    const int64_t step = fields.count_or(kKey, kMaxLayers, 4);
    return [step](int64_t layer) { return (layer + 1) % step != 0; };
  }
  const std::string pattern = fields.text_or(kKey, "");
  if (pattern.empty() || pattern.find_first_not_of("LG") != std::string::npos)
    throw base::InputError(base::expectation(fields.at(kKey), "L and G, as \"LLLG\"", "'" + pattern + "'"));
  return [pattern, layers](int64_t layer) {
    return layer + 1 < layers && base::at(pattern, layer % std::ssize(pattern)) == 'L';
  };
}

// Reads EXAONE 4 (LG AI Research 2025): a Llama with norms behind the halves and norms of heads. Where some layers have
// a window, only these rotate.
ModelShape parse_exaone(const Fields& fields, const std::string& family) {
  ModelShape shape = read_swiglu_shape(fields, family, {.epsilon = 1e-5});
  for (Block& block : shape.blocks) {
    block.place = NormPlace::kBehind;
    block.attention.head_norm = true;
    block.attention.bias = block.attention.output_bias = block.mlp.bias = false;
  }
  if (const int64_t window = read_window_or(fields, 4096); window > 0)
    read_turning_windows(fields, shape, window, read_pattern(fields, shape.layers()));
  return shape;
}

void add_exaone_config(const ModelShape& shape, json& config) {
  add_swiglu_config(shape, config);
  add_turning_windows(shape, config);
  const bool hybrid = std::ranges::any_of(
      shape.blocks, [](const Block& block) { return block.attention.window > 0 || !block.attention.rotary; });
  if (hybrid && config.at("sliding_window").is_null())
    config["sliding_window"] = shape.max_positions;  // with null all layers would rotate
  if (hybrid) return;
  config["sliding_window"] = config["sliding_window_pattern"] = nullptr;
  config["layer_types"] = std::vector<std::string>(shape.blocks.size(), kFull);
}

}  // namespace

std::vector<Family> exaone4_families() {
  ModuleNames names = llama_names();
  names.attention_norm = "post_attention_layernorm";
  names.mlp_norm = "post_feedforward_layernorm";
  return {family_of("exaone4", "Exaone4", parse_exaone, add_exaone_config, names)};
}

}  // namespace collimate::shape
