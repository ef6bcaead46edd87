#include "collimate/shape/family.h"
#include "collimate/shape/mixture.h"
#include "collimate/shape/usual_config.h"
#include "collimate/shape/usual_mixture.h"
#include "collimate/shape/usual_windows.h"

namespace collimate::shape {
namespace {

using nlohmann::json;

// Returns the rope of a config that has none.
json default_rope() {
  return {{"rope_type", "yarn"}, {"factor", 32.0},    {"original_max_position_embeddings", 4096}, {"beta_fast", 32.0},
          {"beta_slow", 1.0},    {"truncate", false}, {"attention_factor", yarn_magnitude(32, 1)}};
}

// Returns the weight of the balance loss that applies. Published configs have a weight of 0.9, but output_router_logits
// says that it does not apply.
double applied_balance(const Fields& fields) {
  return fields.flag_or("output_router_logits", false) ? read_balance(fields) : 0;
}

// Reads gpt-oss (OpenAI 2025): experts with a bounded swish, biases in all linear layers, attention sinks, and a window
// in every second layer.
ModelShape parse_gpt_oss(const Fields& fields, const std::string& family) {
  ModelShape shape = read_mixture(
      fields, family, {.router_bias = true, .biased = true, .normalized = true, .balance = applied_balance(fields)},
      {.theta = 1.5e5, .positions = 131072, .epsilon = 1e-5, .head_dim = 64});
  if (!fields.has("rope_scaling") && !fields.has("rope_parameters")) shape.rope_scaling = default_rope();
  for (Block& block : shape.blocks) {
    block.attention.bias = block.attention.output_bias = fields.flag_or("attention_bias", true);
    block.attention.sinks = true;
    block.mlp.activation = Activation::kBoundedSwish;
    block.mlp.slope = fields.real_or("swiglu_alpha", 1.702);
    block.mlp.bound = fields.real_or("swiglu_limit", 7);
  }
  read_windows(fields, shape, read_window_or(fields, 128), [](int64_t layer) { return layer % 2 == 0; });
  return shape;
}

void add_gpt_oss_config(const ModelShape& shape, json& config) {
  const Block& block = shape.blocks.front();
  const Experts& experts = *experts_of(shape);
  add_swiglu_config(shape, config);
  config["intermediate_size"] = experts.intermediate;
  config["num_local_experts"] = experts.count;
  config["num_experts_per_tok"] = experts.per_token;
  if (experts.balance > 0) config["router_aux_loss_coef"] = experts.balance;
  config["output_router_logits"] = experts.balance > 0;
  config["attention_bias"] = block.attention.bias;
  config["swiglu_alpha"] = block.mlp.slope;
  config["swiglu_limit"] = block.mlp.bound;
  if (shape.rope_scaling.is_null()) config["rope_scaling"] = {{"rope_type", "default"}};  // null would stand for YaRN
  add_all_layer_types(shape, config);
}

}  // namespace

std::vector<Family> gpt_oss_families() {
  ModuleNames names = expert_names("mlp.router", "mlp.experts.", {"gate_up_proj"}, "down_proj");
  names.sinks = "self_attn.sinks";
  names.stacked_up = "mlp.experts.gate_up_proj";
  names.stacked_down = "mlp.experts.down_proj";
  names.stacked_transposed = names.stacked_interleaved = true;
  return {family_of("gpt_oss", "GptOss", parse_gpt_oss, add_gpt_oss_config, names)};
}

}  // namespace collimate::shape
