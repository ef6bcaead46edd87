#include "collimate/base/error.h"
#include "collimate/shape/family.h"
#include "collimate/shape/spec_builder.h"

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

void read_rope(const Fields& fields, ModelShape& shape) {
  shape.rope_theta = fields.real_or("rope_theta", 10000.0);
  if (fields.has("rope_scaling")) read_rope_scaling(fields.raw("rope_scaling"), fields.at("rope_scaling"), shape);
  if (!fields.has("rope_parameters")) return;
  const json& parameters = fields.raw("rope_parameters");  // the place that newer configs use for both
  read_rope_scaling(parameters, fields.at("rope_parameters"), shape);
  shape.rope_theta = Fields(parameters, fields.at("rope_parameters")).real_or("rope_theta", shape.rope_theta);
}

void reject_sliding_window(const Fields& fields, const ModelShape& shape) {
  if (!fields.has("sliding_window") || (shape.family == "qwen2" && !fields.flag_or("use_sliding_window", false)))
    return;
  if (fields.count("sliding_window", kMaxCount) < shape.max_positions)
    throw InputError(expectation(fields.at("sliding_window"), "null or at least max_position_embeddings",
                                 fields.raw("sliding_window").dump(), "lowering max_position_embeddings to it"));
}

ModelShape parse_llama(const Fields& fields, const std::string& family) {
  ModelShape shape;
  shape.family = family;
  shape.vocabulary = fields.count("vocab_size", kMaxCount);
  shape.hidden = fields.count("hidden_size", kMaxHidden);
  shape.layers = fields.count("num_hidden_layers", kMaxLayers);
  shape.heads = fields.count("num_attention_heads", kMaxHidden);
  shape.kv_heads = fields.count_or("num_key_value_heads", kMaxHidden, shape.heads);
  shape.head_dim = fields.count_or("head_dim", kMaxHidden, shape.hidden / shape.heads);
  shape.intermediate = fields.count("intermediate_size", kMaxHidden);
  shape.max_positions = fields.count_or("max_position_embeddings", kMaxCount, 2048);
  shape.norm_epsilon = static_cast<float>(fields.real_or("rms_norm_eps", 1e-6));
  shape.activation = fields.text_or("hidden_act", "silu");
  shape.tied_embeddings = fields.flag_or("tie_word_embeddings", false);
  shape.attention_bias = family == "qwen2" || fields.flag_or("attention_bias", false);
  shape.output_bias = family == "llama" && shape.attention_bias;
  shape.mlp_bias = family == "llama" && fields.flag_or("mlp_bias", false);
  read_rope(fields, shape);
  reject_sliding_window(fields, shape);
  if (shape.activation != "silu")
    throw InputError(expectation(fields.at("hidden_act"), "silu", "'" + shape.activation + "'"));
  return shape;
}

void validate_llama(const ModelShape& shape, const std::string& where) {
  if (shape.head_dim % 2 != 0)
    throw InputError(
        expectation(where + " head_dim", "an even number for rotary positions", std::to_string(shape.head_dim)));
}

void add_llama_config(const ModelShape& shape, json& config) {
  config["hidden_size"] = shape.hidden;
  config["num_hidden_layers"] = shape.layers;
  config["num_attention_heads"] = shape.heads;
  config["num_key_value_heads"] = shape.kv_heads;
  config["head_dim"] = shape.head_dim;
  config["intermediate_size"] = shape.intermediate;
  config["max_position_embeddings"] = shape.max_positions;
  config["rms_norm_eps"] = static_cast<double>(shape.norm_epsilon);
  config["hidden_act"] = shape.activation;
  config["rope_theta"] = shape.rope_theta;
  config["rope_scaling"] = shape.rope_scaling;
  if (shape.family == "llama") {
    config["attention_bias"] = shape.attention_bias;
    config["mlp_bias"] = shape.mlp_bias;
  } else {
    config["sliding_window"] = nullptr;
  }
}

void add_llama_attention(Builder& out, const ModelShape& shape, const std::string& prefix) {
  const int64_t q_rows = shape.heads * shape.head_dim, kv_rows = shape.kv_heads * shape.head_dim;
  split_rows(out.add(prefix + "q_proj.weight", ParamKind::kLinear, {q_rows, shape.hidden}), shape.head_dim);
  split_rows(out.add(prefix + "k_proj.weight", ParamKind::kLinear, {kv_rows, shape.hidden}), shape.head_dim, true);
  split_rows(out.add(prefix + "v_proj.weight", ParamKind::kLinear, {kv_rows, shape.hidden}), shape.head_dim, true);
  out.fuse(3);
  if (shape.attention_bias) {
    split_rows(out.add(prefix + "q_proj.bias", ParamKind::kBias, {q_rows}), shape.head_dim);
    split_rows(out.add(prefix + "k_proj.bias", ParamKind::kBias, {kv_rows}), shape.head_dim, true);
    split_rows(out.add(prefix + "v_proj.bias", ParamKind::kBias, {kv_rows}), shape.head_dim, true);
    out.fuse(3);
  }
  split_columns(out.add(prefix + "o_proj.weight", ParamKind::kLinear, {shape.hidden, q_rows}), shape.head_dim);
  if (shape.output_bias) out.add(prefix + "o_proj.bias", ParamKind::kBias, {shape.hidden});
}

void add_llama_mlp(Builder& out, const ModelShape& shape, const std::string& prefix) {
  split_rows(out.add(prefix + "gate_proj.weight", ParamKind::kLinear, {shape.intermediate, shape.hidden}), 1);
  split_rows(out.add(prefix + "up_proj.weight", ParamKind::kLinear, {shape.intermediate, shape.hidden}), 1);
  out.fuse(2);
  if (shape.mlp_bias) {
    split_rows(out.add(prefix + "gate_proj.bias", ParamKind::kBias, {shape.intermediate}), 1);
    split_rows(out.add(prefix + "up_proj.bias", ParamKind::kBias, {shape.intermediate}), 1);
    out.fuse(2);
  }
  split_columns(out.add(prefix + "down_proj.weight", ParamKind::kLinear, {shape.hidden, shape.intermediate}), 1);
  if (shape.mlp_bias) out.add(prefix + "down_proj.bias", ParamKind::kBias, {shape.hidden});
}

std::vector<ParamSpec> llama_specs(const ModelShape& shape) {
  Builder out;
  out.begin_segment(0);
  split_rows(out.add("model.embed_tokens.weight", ParamKind::kEmbedding, {shape.vocabulary, shape.hidden}), 1);
  for (int64_t layer = 0; layer < shape.layers; ++layer) {
    out.begin_segment(static_cast<int>(layer) + 1);
    const std::string prefix = "model.layers." + std::to_string(layer) + ".";
    out.add(prefix + "input_layernorm.weight", ParamKind::kNorm, {shape.hidden});
    add_llama_attention(out, shape, prefix + "self_attn.");
    out.add(prefix + "post_attention_layernorm.weight", ParamKind::kNorm, {shape.hidden});
    add_llama_mlp(out, shape, prefix + "mlp.");
  }
  out.begin_segment(static_cast<int>(shape.layers) + 1);
  out.add("model.norm.weight", ParamKind::kNorm, {shape.hidden});
  add_head(out, shape);
  return out.take();
}

Family member(const char* name, const std::string& classes) {
  return {name,        classes + "ForCausalLM", classes + "ForSequenceClassification",
          parse_llama, validate_llama,          add_llama_config,
          llama_specs};
}

}  // namespace

std::vector<Family> llama_families() {
  return {member("llama", "Llama"), member("mistral", "Mistral"), member("qwen2", "Qwen2")};
}

}  // namespace collimate::shape
