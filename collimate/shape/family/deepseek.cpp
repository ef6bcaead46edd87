#include <cmath>

#include "collimate/base/error.h"
#include "collimate/shape/mixture.h"
#include "collimate/shape/usual_config.h"
#include "collimate/shape/usual_mixture.h"

namespace collimate::shape {
namespace {

using nlohmann::json;

// Throws InputError where one of these keys is missing: transformers' defaults for them differ from version to version.
void require_keys(const Fields& fields, std::initializer_list<const char*> keys) {
  for (const char* key : keys)
    if (!fields.has(key)) throw base::InputError(base::expectation(fields.at(key), "a number", "nothing"));
  if (!fields.has("q_lora_rank") && !fields.is_null("q_lora_rank"))
    throw base::InputError(base::expectation(fields.at("q_lora_rank"), "a number, or null", "nothing"));
  if (fields.count_or("moe_layer_freq", kMaxLayers, 1) != 1)
    throw base::InputError(base::expectation(fields.at("moe_layer_freq"), "1", fields.raw("moe_layer_freq").dump(),
                                             "a model whose later blocks all have experts"));
}

// Sets the attention of V2 and V3. `paired` says whether files have the two channels that rotate together side by side.
// With YaRN scores are scaled by its factor twice, once for queries and once for keys.
void set_attention(const Fields& fields, ModelShape& shape, bool paired) {
  for (Block& block : shape.blocks) {
    Attention& attention = block.attention;
    if (attention.kv_heads != attention.heads)
      throw base::InputError(base::expectation(fields.at("num_key_value_heads"),
                                               fmt::format("{}, one a head", attention.heads),
                                               std::to_string(attention.kv_heads)));
    attention.paired = paired;
    attention.bias = attention.output_bias = fields.flag_or("attention_bias", false);
    if (!shape.rope_scaling.contains("mscale_all_dim")) continue;
    const double factor = yarn_magnitude(shape.rope_scaling.at("factor"), shape.rope_scaling.at("mscale_all_dim"));
    attention.scale = factor * factor / std::sqrt(static_cast<double>(attention.head_dim));
  }
}

// Reads DeepSeek-V2 (DeepSeek-AI 2024): scores are a softmax over all experts, and groups are compared by their best
// one.
ModelShape parse_v2(const Fields& fields, const std::string& family) {
  require_keys(fields, {"kv_lora_rank", "first_k_dense_replace"});
  fields.require("norm_topk_prob", false);
  fields.require("scoring_func", "softmax");
  Experts how = {.group_best = true, .scale = fields.real_or("routed_scaling_factor", 1.0)};
  const std::string method = fields.text_or("topk_method", "greedy");
  if (method == "group_limited_greedy") {
    how.groups = fields.count("n_group", kMaxCount);
    how.chosen_groups = fields.count("topk_group", how.groups);
  } else if (method != "greedy") {
    throw base::InputError(
        base::expectation(fields.at("topk_method"), "greedy or group_limited_greedy", "'" + method + "'"));
  }
  ModelShape shape = read_mixture(fields, family, how);
  set_attention(fields, shape, /*paired=*/true);
  return shape;
}

// Reads DeepSeek-V3 (DeepSeek-AI 2024), R1, Moonlight and Kimi K2: scores are sigmoids, with a bias for the choice.
// Their files may hold blocks that predict further tokens, which generation and training do not use.
ModelShape parse_v3(const Fields& fields, const std::string& family) {
  require_keys(fields, {"kv_lora_rank", "first_k_dense_replace", "n_group", "topk_group", "routed_scaling_factor"});
  if (!fields.has("norm_topk_prob"))
    throw base::InputError(base::expectation(fields.at("norm_topk_prob"), "true or false", "nothing"));
  fields.require("topk_method", "noaux_tc");
  fields.require("scoring_func", "sigmoid");
  ModelShape shape = read_mixture(fields, family, read_grouped_routing(fields));
  shape.unused_blocks = fields.whole_or("num_nextn_predict_layers", kMaxLayers, 0);
  set_attention(fields, shape, fields.flag_or("rope_interleave", true));
  return shape;
}

void add_deepseek_config(const ModelShape& shape, json& config) {
  add_usual_config(shape, config);
  add_grouped_config(shape, config);
  const Attention& attention = shape.blocks.front().attention;
  config["q_lora_rank"] = nullptr;
  if (attention.latent.q_rank > 0) config["q_lora_rank"] = attention.latent.q_rank;
  config["kv_lora_rank"] = attention.latent.kv_rank;
  config["qk_nope_head_dim"] = attention.head_dim - attention.latent.rope_dim;
  config["qk_rope_head_dim"] = config["head_dim"] = attention.latent.rope_dim;
  config["v_head_dim"] = attention.latent.value_dim;
}

void add_v2_config(const ModelShape& shape, json& config) {
  add_deepseek_config(shape, config);
  config["scoring_func"] = "softmax";
  config["topk_method"] = experts_of(shape)->groups > 1 ? "group_limited_greedy" : "greedy";
}

void add_v3_config(const ModelShape& shape, json& config) {
  add_deepseek_config(shape, config);
  config["scoring_func"] = "sigmoid";
  config["topk_method"] = "noaux_tc";
  config["rope_interleave"] = shape.blocks.front().attention.paired;
  config["num_nextn_predict_layers"] = 0;
}

ModuleNames deepseek_names() {
  ModuleNames names = mixture_names("mlp.shared_experts");
  names.query = "self_attn.q_proj";
  names.query_down = "self_attn.q_a_proj";
  names.query_down_norm = "self_attn.q_a_layernorm";
  names.query_up = "self_attn.q_b_proj";
  names.key_value_down = "self_attn.kv_a_proj_with_mqa";
  names.key_value_down_norm = "self_attn.kv_a_layernorm";
  names.key_value_up = "self_attn.kv_b_proj";
  return names;
}

Family member(const char* name, const std::string& classes, decltype(Family::parse) parse,
              decltype(Family::add_config) add_config) {
  return with_usual_keys(family_of(name, classes, parse, add_config, deepseek_names()));
}

}  // namespace

std::vector<Family> deepseek_families() {
  Family third = member("deepseek_v3", "DeepseekV3", parse_v3, add_v3_config);
  third.other_types = {"kimi_k2"};
  return {member("deepseek_v2", "DeepseekV2", parse_v2, add_v2_config), third};
}

}  // namespace collimate::shape
