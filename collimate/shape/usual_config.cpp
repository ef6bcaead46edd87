#include "collimate/shape/usual_config.h"

#include "collimate/base/error.h"

namespace collimate::shape {
namespace {

using base::expectation;
using base::InputError;
using nlohmann::json;

void read_rope_scaling(const json& scaling, const std::string& where, ModelShape& shape) {
  if (!scaling.is_object()) throw InputError(expectation(where, "an object", scaling.dump()));
  const Fields fields(scaling, where);
  const std::string type = fields.text_or("rope_type", fields.text_or("type", "default"));
  if (type == "default") return;
  if (type != "linear" && type != "dynamic" && type != "llama3")
    throw InputError(expectation(where + " rope_type", "one of default, linear, dynamic, llama3", "'" + type + "'"));
  fields.real_or("factor", 1.0);
  json kept = {{"rope_type", type}};
  if (!fields.has("factor")) throw InputError(expectation(where + " factor", "a positive number", "nothing"));
  for (const char* key : {"factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"}) {
    if (fields.has(key)) {
      kept[key] = fields.real_or(key, 1.0);
    } else if (type == "llama3") {
      throw InputError(expectation(where + " " + key, "a positive number", "nothing"));
    }
  }
  shape.rope_scaling = kept;
}

Experts read_experts(const Fields& fields, int64_t intermediate) {
  Experts experts;
  for (const char* key : {"num_experts", "num_local_experts", "n_routed_experts"})
    if (fields.has(key)) experts.count = fields.count(key, kMaxCount);
  if (experts.count <= 1) return {};
  experts.per_token = fields.count("num_experts_per_tok", experts.count);
  experts.intermediate = fields.count_or("moe_intermediate_size", kMaxHidden, intermediate);
  experts.shared = fields.count_or("shared_expert_intermediate_size", kMaxHidden, 0);
  if (fields.has("n_shared_experts"))
    experts.shared = fields.count("n_shared_experts", kMaxLayers) * experts.intermediate;
  return experts;
}

Attention read_attention(const Fields& fields, int64_t hidden) {
  Attention attention;
  attention.heads = fields.count("num_attention_heads", kMaxHidden);
  attention.kv_heads = fields.count_or("num_key_value_heads", kMaxHidden, attention.heads);
  attention.head_dim = fields.count_or("head_dim", kMaxHidden, hidden / attention.heads);
  attention.bias = attention.output_bias = fields.flag_or("attention_bias", false);
  if (!fields.has("kv_lora_rank")) return attention;
  attention.latent = {fields.count_or("q_lora_rank", kMaxHidden, 0), fields.count("kv_lora_rank", kMaxHidden),
                      fields.count("qk_rope_head_dim", kMaxHidden), fields.count("v_head_dim", kMaxHidden)};
  attention.head_dim = fields.count("qk_nope_head_dim", kMaxHidden) + attention.latent.rope_dim;
  return attention;
}

}  // namespace

void read_rope(const Fields& fields, ModelShape& shape) {
  shape.rope_theta = fields.real_or("rope_theta", 10000.0);
  if (fields.has("rope_scaling")) read_rope_scaling(fields.raw("rope_scaling"), fields.at("rope_scaling"), shape);
  if (!fields.has("rope_parameters")) return;
  const json& parameters = fields.raw("rope_parameters");  // the place that newer configs use for both
  read_rope_scaling(parameters, fields.at("rope_parameters"), shape);
  shape.rope_theta = Fields(parameters, fields.at("rope_parameters")).real_or("rope_theta", shape.rope_theta);
}

ModelShape read_sizes(const Fields& fields, const std::string& family, const SizeKeys& keys) {
  ModelShape shape;
  shape.family = family;
  shape.vocabulary = fields.count("vocab_size", kMaxCount);
  shape.hidden = fields.count(keys.hidden, kMaxHidden);
  const int64_t layers = fields.count(keys.layers, kMaxLayers), heads = fields.count(keys.heads, kMaxHidden);
  if (shape.hidden % heads != 0)
    throw InputError(expectation(fields.at(keys.heads), fmt::format("a divisor of {} {}", keys.hidden, shape.hidden),
                                 std::to_string(heads)));
  Block block;
  block.attention = {.heads = heads, .kv_heads = heads, .head_dim = shape.hidden / heads};
  shape.blocks.assign(static_cast<size_t>(layers), block);
  return shape;
}

ModelShape read_usual_shape(const Fields& fields, const std::string& family) {
  ModelShape shape;
  shape.family = family;
  shape.vocabulary = fields.count("vocab_size", kMaxCount);
  shape.hidden = fields.count("hidden_size", kMaxHidden);
  const int64_t layers = fields.count("num_hidden_layers", kMaxLayers);
  Block block;
  block.attention = read_attention(fields, shape.hidden);
  block.mlp.intermediate = fields.count("intermediate_size", kMaxHidden);
  block.mlp.bias = fields.flag_or("mlp_bias", false);
  block.norm_epsilon = static_cast<float>(fields.real_or("rms_norm_eps", 1e-6));
  shape.max_positions = fields.count_or("max_position_embeddings", kMaxCount, 2048);
  shape.tied_embeddings = fields.flag_or("tie_word_embeddings", false);
  const Experts experts = read_experts(fields, block.mlp.intermediate);
  const int64_t dense = experts.count > 0 ? fields.whole_or("first_k_dense_replace", layers, 0) : layers;
  shape.blocks.assign(static_cast<size_t>(dense), block);
  block.mlp.experts = experts;
  shape.blocks.resize(static_cast<size_t>(layers), block);
  return shape;
}

void add_usual_config(const ModelShape& shape, json& config) {
  const Block& block = shape.blocks.front();
  config["hidden_size"] = shape.hidden;
  config["num_hidden_layers"] = shape.layers();
  config["num_attention_heads"] = block.attention.heads;
  config["num_key_value_heads"] = block.attention.kv_heads;
  config["head_dim"] = block.attention.head_dim;
  config["intermediate_size"] = block.mlp.intermediate;
  config["max_position_embeddings"] = shape.max_positions;
  config["rms_norm_eps"] = static_cast<double>(block.norm_epsilon);
  config["rope_theta"] = shape.rope_theta;
  config["rope_scaling"] = shape.rope_scaling;
}

}  // namespace collimate::shape
