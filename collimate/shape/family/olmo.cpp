#include "collimate/base/error.h"
#include "collimate/shape/family.h"
#include "collimate/shape/mixture.h"
#include "collimate/shape/usual_config.h"
#include "collimate/shape/usual_mixture.h"
#include "collimate/shape/usual_windows.h"

namespace collimate::shape {
namespace {

using nlohmann::json;

constexpr double kOlmoTheta = 5e5;  // base in OLMo 3, where a config has none

// Reads OLMo 3's layers: every fourth one reads all keys and rotates as the model's rope says; the others have a
// window, and their rotation is not scaled.
void read_layers_of_third(const Fields& fields, ModelShape& shape) {
  const double local = read_two_ropes(fields, shape, kOlmoTheta, 0);
  const int64_t window = read_window_or(fields, 4096);
  const std::vector<bool> sliding =
      read_windows(fields, shape, window, [](int64_t layer) { return (layer + 1) % 4 != 0; });
  const bool differs = !shape.rope_scaling.is_null() || local != shape.rope_theta;
  for (size_t layer = 0; layer < shape.blocks.size(); ++layer)
    if (differs && sliding[layer]) shape.blocks[layer].attention.rope_theta = local;
}

// Reads OLMo 2 (OLMo Team 2024) and 3 (2025): a Llama with norms behind the halves, and with one norm over all heads of
// a query, or of a key, together.
ModelShape parse_olmo(const Fields& fields, const std::string& family) {
  ModelShape shape = read_usual_shape(fields, family, {.epsilon = 1e-5});
  fields.require("hidden_act", "silu");
  if (family == "olmo3")
    read_layers_of_third(fields, shape);
  else
    read_rope(fields, shape);
  for (Block& block : shape.blocks) {
    block.place = NormPlace::kBehind;
    block.attention.head_norm = block.attention.norm_of_all = true;
    block.mlp.bias = false;
  }
  return shape;
}

// Reads OLMoE (Muennighoff et al. 2024): norms ahead of the halves, and experts in every block.
ModelShape parse_olmoe(const Fields& fields, const std::string& family) {
  if (fields.has("clip_qkv"))
    throw base::InputError(base::expectation(fields.at("clip_qkv"), "null", fields.raw("clip_qkv").dump(),
                                             "a model whose queries, keys and values have no bound"));
  ModelShape shape = read_mixture(
      fields, family, {.normalized = fields.flag_or("norm_topk_prob", false), .balance = read_balance(fields, 0.01)},
      {.epsilon = 1e-5});
  for (Block& block : shape.blocks) {
    block.attention.bias = block.attention.output_bias = fields.flag_or("attention_bias", false);
    block.attention.head_norm = block.attention.norm_of_all = true;
  }
  return shape;
}

// Adds OLMo 3's layers and ropes both for readers that only know two ropes and for readers that know one.
void add_layers_of_third(const ModelShape& shape, json& config) {
  json full = shape.rope_scaling.is_null() ? json{{"rope_type", "default"}} : shape.rope_scaling;
  full["rope_theta"] = shape.rope_theta;
  json local = {{"rope_type", "default"}, {"rope_theta", shape.rope_theta}};
  add_window_size(shape, config);
  config["layer_types"] = json::array();
  for (const Block& block : shape.blocks) {
    const Attention& attention = block.attention;
    config["layer_types"].push_back(attention.window > 0 || attention.rope_theta > 0 ? kSliding : kFull);
    if (attention.rope_theta > 0) local["rope_theta"] = attention.rope_theta;
  }
  if (config["sliding_window"].is_null()) config["sliding_window"] = shape.max_positions;
  config["rope_parameters"] = {{kFull, full}, {kSliding, local}};
}

void add_olmo_config(const ModelShape& shape, json& config) {
  add_swiglu_config(shape, config);
  config["attention_bias"] = shape.blocks.front().attention.bias;
  if (shape.family == "olmo3") add_layers_of_third(shape, config);
}

void add_olmoe_config(const ModelShape& shape, json& config) {
  add_swiglu_config(shape, config);
  const Experts& experts = *experts_of(shape);
  config["attention_bias"] = shape.blocks.front().attention.bias;
  config["intermediate_size"] = experts.intermediate;
  config["num_experts"] = experts.count;
  config["num_experts_per_tok"] = experts.per_token;
  config["norm_topk_prob"] = experts.normalized;
  config["router_aux_loss_coef"] = experts.balance;
}

}  // namespace

std::vector<Family> olmo_families() {
  ModuleNames names = llama_names();
  names.attention_norm = "post_attention_layernorm";
  names.mlp_norm = "post_feedforward_layernorm";
  return {family_of("olmo2", "Olmo2", parse_olmo, add_olmo_config, names),
          family_of("olmo3", "Olmo3", parse_olmo, add_olmo_config, names),
          family_of("olmoe", "Olmoe", parse_olmoe, add_olmoe_config, mixture_names(""))};
}

}  // namespace collimate::shape
