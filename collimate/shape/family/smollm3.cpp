#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/shape/family.h"
#include "collimate/shape/usual_config.h"
#include "collimate/shape/usual_windows.h"

namespace collimate::shape {
namespace {

using nlohmann::json;

// Returns for each layer whether it rotates: a list of 1 and 0 says so, or else all do but every fourth.
std::vector<bool> read_turning(const Fields& fields, int64_t layers) {
  std::vector<bool> turning;
  if (!fields.has("no_rope_layers")) {
    const int64_t step = fields.count_or("no_rope_layer_interval", kMaxLayers, 4);
    for (int64_t layer = 0; layer < layers; ++layer) turning.push_back((layer + 1) % step != 0);
    return turning;
  }
  const json& list = fields.raw("no_rope_layers");
  for (const json& turns : list)
    if (turns == 0 || turns == 1) turning.push_back(turns == 1);
  if (!list.is_array() || list.size() != turning.size() || std::ssize(turning) < layers)
    throw base::InputError(
        base::expectation(fields.at("no_rope_layers"), fmt::format("{} of 1 and 0", layers), list.dump()));
  return turning;
}

// Reads SmolLM3 (Bakouch et al. 2025): a Llama in which queries and keys of every fourth layer are not rotated. If
// there is a window, these layers have it, unless layer_types name others.
ModelShape parse_smollm3(const Fields& fields, const std::string& family) {
  ModelShape shape = read_swiglu_shape(fields, family, {.theta = 2e6, .positions = 32768, .tied = true});
  const std::vector<bool> turning = read_turning(fields, shape.layers());
  for (int64_t layer = 0; layer < shape.layers(); ++layer)
    base::at(shape.blocks, layer).attention.rotary = base::at(turning, layer);
  const int64_t window = fields.flag_or("use_sliding_window", false) ? read_window_or(fields, 0) : 0;
  read_windows(fields, shape, window, [&](int64_t layer) { return !base::at(turning, layer); });
  return shape;
}

void add_smollm3_config(const ModelShape& shape, json& config) {
  const Block& block = shape.blocks.front();
  add_swiglu_config(shape, config);
  config["attention_bias"] = block.attention.bias;
  config["mlp_bias"] = block.mlp.bias;
  config["no_rope_layers"] = json::array();
  for (const Block& each : shape.blocks) config["no_rope_layers"].push_back(each.attention.rotary ? 1 : 0);
  add_window_size(shape, config);
  config["use_sliding_window"] = !config["sliding_window"].is_null();
  add_layer_types(shape, config);
}

}  // namespace

std::vector<Family> smollm3_families() {
  return {with_usual_keys(family_of("smollm3", "SmolLM3", parse_smollm3, add_smollm3_config, llama_names()))};
}

}  // namespace collimate::shape
