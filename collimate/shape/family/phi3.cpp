#include "collimate/base/error.h"
#include "collimate/shape/family.h"
#include "collimate/shape/usual_config.h"

namespace collimate::shape {
namespace {

using base::expectation;
using base::InputError;

// Phi-3 (Abdin et al. 2024): a Llama whose files hold queries, keys and values as one, and gate and up, with a window
// in every block.
ModelShape parse_phi3(const Fields& fields, const std::string& family) {
  ModelShape shape = read_usual_shape(fields, family);
  read_rope(fields, shape);
  fields.require("hidden_act", "silu");
  if (const double part = fields.real_or("partial_rotary_factor", 1.0); part != 1.0)
    throw InputError(expectation(fields.at("partial_rotary_factor"), "1", fmt::format("{}", part),
                                 "a model of which whole heads turn"));
  const int64_t window = fields.has("sliding_window") ? fields.count("sliding_window", kMaxCount) : 0;
  for (Block& block : shape.blocks) {
    block.attention.window = window < shape.max_positions ? window : 0;
    block.attention.bias = block.attention.output_bias = block.mlp.bias = false;
  }
  return shape;
}

void add_phi3_config(const ModelShape& shape, nlohmann::json& config) {
  add_usual_config(shape, config);
  config["hidden_act"] = "silu";
  config["sliding_window"] = nullptr;
  if (const int64_t window = shape.blocks.front().attention.window; window > 0) config["sliding_window"] = window;
}

}  // namespace

std::vector<Family> phi3_families() {
  ModuleNames names = llama_names();
  names.query_key_value = {"self_attn.qkv_proj"};
  names.up = {"mlp.gate_up_proj"};
  return {{"phi3", "Phi3ForCausalLM", "Phi3ForSequenceClassification", parse_phi3, add_phi3_config, names,
           /*has_usual_keys=*/true}};
}

}  // namespace collimate::shape
