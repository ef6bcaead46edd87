#include "collimate/shape/usual_windows.h"

#include <algorithm>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/shape/usual_config.h"

namespace collimate::shape {

using base::expectation;
using base::InputError;
using nlohmann::json;

int64_t read_window_or(const Fields& fields, int64_t fallback) {
  return fields.is_null("sliding_window") ? 0 : fields.count_or("sliding_window", kMaxCount, fallback);
}

int64_t read_qwen_window(const Fields& fields) {
  return fields.flag_or("use_sliding_window", false) ? read_window_or(fields, 4096) : 0;
}

void set_windows(ModelShape& shape, int64_t window, const LayerRule& rule) {
  for (int64_t layer = 0; layer < shape.layers(); ++layer)
    if (window < shape.positions() && rule(layer)) base::at(shape.blocks, layer).attention.window = window;
}

std::vector<bool> read_sliding(const Fields& fields, int64_t layers, const LayerRule& by_default) {
  std::vector<bool> sliding;
  if (!fields.has("layer_types")) {
    for (int64_t layer = 0; layer < layers; ++layer) sliding.push_back(by_default(layer));
    return sliding;
  }
  const json& types = fields.raw("layer_types");
  for (const json& type : types)
    if (type == kSliding || type == kFull) sliding.push_back(type == kSliding);
  if (!types.is_array() || types.size() != sliding.size() || static_cast<int64_t>(sliding.size()) != layers)
    throw InputError(expectation(fields.at("layer_types"),
                                 fmt::format("{} of \"{}\" and \"{}\"", layers, kSliding, kFull), types.dump()));
  return sliding;
}

std::vector<bool> read_windows(const Fields& fields, ModelShape& shape, int64_t window, const LayerRule& by_default) {
  std::vector<bool> sliding =
      read_sliding(fields, shape.layers(), [&](int64_t layer) { return window > 0 && by_default(layer); });
  if (window == 0 && std::find(sliding.begin(), sliding.end(), true) != sliding.end())
    throw InputError(expectation(fields.at("layer_types"), fmt::format("\"{}\" alone without a window", kFull),
                                 fields.raw("layer_types").dump(), "sliding_window, and use_sliding_window: true"));
  set_windows(shape, window, [&](int64_t layer) { return base::at(sliding, layer); });
  return sliding;
}

void read_turning_windows(const Fields& fields, ModelShape& shape, int64_t window, const LayerRule& by_default) {
  const std::vector<bool> sliding = read_windows(fields, shape, window, by_default);
  for (int64_t layer = 0; layer < shape.layers(); ++layer)
    base::at(shape.blocks, layer).attention.rotary = base::at(sliding, layer);
}

void add_turning_windows(const ModelShape& shape, json& config) {
  add_window_size(shape, config);
  config["layer_types"] = json::array();
  for (const Block& block : shape.blocks) {
    config["layer_types"].push_back(block.attention.rotary ? kSliding : kFull);
    if (block.attention.rotary && config["sliding_window"].is_null()) config["sliding_window"] = shape.max_positions;
  }
}

double read_two_ropes(const Fields& fields, ModelShape& shape, double theta, double local) {
  const json parameters = fields.has("rope_parameters") ? fields.raw("rope_parameters") : json();
  if (!parameters.contains(kFull) && !parameters.contains(kSliding)) {
    read_rope(fields, shape, theta);
    return local > 0 ? local : shape.rope_theta;
  }
  const Fields both(parameters, fields.at("rope_parameters"));
  shape.rope_theta = fields.real_or("rope_theta", theta);
  ModelShape of_windows;
  of_windows.rope_theta = local > 0 ? local : shape.rope_theta;
  read_rope_object(both, kFull, fields, shape);
  read_rope_object(fields, "rope_scaling", fields, shape);
  read_rope_object(both, kSliding, fields, of_windows);
  if (!of_windows.rope_scaling.is_null())
    throw InputError(expectation(both.at(kSliding), "rope_type default", of_windows.rope_scaling.dump()));
  return of_windows.rope_theta;
}

void add_window_size(const ModelShape& shape, json& config) {
  config["sliding_window"] = nullptr;
  for (const Block& block : shape.blocks)
    if (block.attention.window > 0) config["sliding_window"] = block.attention.window;
}

void add_all_layer_types(const ModelShape& shape, json& config) {
  add_window_size(shape, config);
  if (config["sliding_window"].is_null()) config["sliding_window"] = shape.max_positions;
  config["layer_types"] = json::array();
  for (const Block& block : shape.blocks)
    config["layer_types"].push_back(block.attention.window > 0 ? kSliding : kFull);
}

void add_layer_types(const ModelShape& shape, json& config) {
  if (std::ranges::none_of(shape.blocks, [](const Block& block) { return block.attention.window > 0; })) return;
  json types = json::array();
  for (const Block& block : shape.blocks) types.push_back(block.attention.window > 0 ? kSliding : kFull);
  config["layer_types"] = types;
}

void add_window_layers(const ModelShape& shape, json& config) {
  const auto first = std::ranges::find_if(shape.blocks, [](const Block& block) { return block.attention.window > 0; });
  config["max_window_layers"] = first - shape.blocks.begin();
  add_layer_types(shape, config);
}

}  // namespace collimate::shape
