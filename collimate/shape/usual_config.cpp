#include "collimate/shape/usual_config.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "collimate/base/error.h"
#include "collimate/base/named.h"
#include "collimate/shape/usual_windows.h"

namespace collimate::shape {
namespace {

using base::expectation;
using base::InputError;
using nlohmann::json;

// These keys say how positions rotate heads. As in transformers, the later one counts where a config has both.
constexpr const char* kRopeKeys[] = {"rope_parameters", "rope_scaling"};

bool says_rope(const Fields& fields, const char* key) { return fields.has(key) && !fields.raw(key).empty(); }

struct NamedActivation {
  std::string_view name;
  Activation activation;
};
// The first name of an activation is the one that is written; the others stand for other ways to compute the same.
constexpr NamedActivation kActivations[] = {{"gelu", Activation::kGelu},
                                            {"gelu_new", Activation::kGeluTanh},
                                            {"relu", Activation::kRelu},
                                            {"relu2", Activation::kReluSquared},
                                            {"gelu_accurate", Activation::kGeluTanh},
                                            {"gelu_fast", Activation::kGeluTanh},
                                            {"gelu_python", Activation::kGelu},
                                            {"gelu_python_tanh", Activation::kGeluTanh},
                                            {"gelu_pytorch_tanh", Activation::kGeluTanh}};

// Returns the length for which a model was trained before its rope was scaled.
int64_t original_positions(const Fields& scaling, const Fields& config, const ModelShape& shape) {
  constexpr const char* kKey = "original_max_position_embeddings";
  return scaling.count_or(kKey, kMaxCount, config.count_or(kKey, kMaxCount, shape.max_positions));
}

// Reads numbers that multiply the wavelengths of pairs of channels, one each.
json read_factors(const Fields& scaling, const char* key) {
  const json factors = scaling.has(key) ? scaling.raw(key) : json();
  bool good = factors.is_array() && !factors.empty();
  for (const json& factor : factors) good = good && factor.is_number() && factor.get<double>() > 0;
  if (!good) throw InputError(expectation(scaling.at(key), "a list of positive numbers", factors.dump()));
  return factors;
}

// Reads LongRoPE (Ding et al. 2024): factors for short and for long sequences, and one for cosines and sines.
json read_longrope(const Fields& scaling, const Fields& config, const ModelShape& shape) {
  const int64_t original = original_positions(scaling, config, shape);
  const double longer = static_cast<double>(shape.max_positions) / static_cast<double>(original);
  const double factor = scaling.real_or("factor", longer);
  const double inferred = factor > 1 ? std::sqrt(1 + std::log(factor) / std::log(static_cast<double>(original))) : 1;
  return {{"rope_type", "longrope"},
          {"short_factor", read_factors(scaling, "short_factor")},
          {"long_factor", read_factors(scaling, "long_factor")},
          {"original_max_position_embeddings", original},
          {"attention_factor", scaling.real_or("attention_factor", inferred)}};
}

// Reads YaRN (Peng et al. 2023). mscale is kept for programs that infer the attention factor from it, even where the
// config has an attention factor.
json read_yarn(const Fields& scaling, const Fields& config, const ModelShape& shape) {
  const int64_t original = original_positions(scaling, config, shape);
  const double longer = static_cast<double>(shape.max_positions) / static_cast<double>(original);
  const double factor = scaling.real_or("factor", longer);
  double inferred = yarn_magnitude(factor, 1);
  if (scaling.has("mscale") && scaling.has("mscale_all_dim"))
    inferred = yarn_magnitude(factor, scaling.real_or("mscale", 1)) /
               yarn_magnitude(factor, scaling.real_or("mscale_all_dim", 1));
  json yarn = {{"rope_type", "yarn"},
               {"factor", factor},
               {"original_max_position_embeddings", original},
               {"attention_factor", scaling.real_or("attention_factor", inferred)},
               {"beta_fast", scaling.real_or("beta_fast", 32)},
               {"beta_slow", scaling.real_or("beta_slow", 1)},
               {"truncate", scaling.flag_or("truncate", true)}};
  for (const char* key : {"mscale", "mscale_all_dim"})
    if (scaling.has(key)) yarn[key] = scaling.real_or(key, 1);
  return yarn;
}

void read_rope_scaling(const Fields& fields, const Fields& config, ModelShape& shape) {
  const std::string where = fields.where();
  const std::string type = fields.text_or("rope_type", fields.text_or("type", "default"));
  if (type == "default") return void(shape.rope_scaling = nullptr);
  if (type == "longrope" || type == "su") return void(shape.rope_scaling = read_longrope(fields, config, shape));
  if (type == "yarn") return void(shape.rope_scaling = read_yarn(fields, config, shape));
  if (type != "linear" && type != "dynamic" && type != "llama3")
    throw InputError(
        expectation(where + " rope_type", "one of default, linear, dynamic, llama3, yarn, longrope", "'" + type + "'"));
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
  experts.shared = fields.whole_or("shared_expert_intermediate_size", kMaxHidden, 0);
  if (fields.has("n_shared_experts"))
    experts.shared = fields.whole_or("n_shared_experts", kMaxLayers, 0) * experts.intermediate;
  return experts;
}

Attention read_attention(const Fields& fields, int64_t hidden, int64_t head_dim) {
  Attention attention;
  attention.heads = fields.count("num_attention_heads", kMaxHidden);
  attention.kv_heads = fields.count_or("num_key_value_heads", kMaxHidden, attention.heads);
  attention.head_dim = fields.count_or("head_dim", kMaxHidden, head_dim > 0 ? head_dim : hidden / attention.heads);
  attention.bias = attention.output_bias = fields.flag_or("attention_bias", false);
  if (!fields.has("kv_lora_rank")) return attention;
  attention.latent = {fields.count_or("q_lora_rank", kMaxHidden, 0), fields.count("kv_lora_rank", kMaxHidden),
                      fields.count("qk_rope_head_dim", kMaxHidden), fields.count("v_head_dim", kMaxHidden)};
  attention.head_dim = fields.count("qk_nope_head_dim", kMaxHidden) + attention.latent.rope_dim;
  attention.rotary_dim = attention.latent.rope_dim;
  return attention;
}

}  // namespace

double yarn_magnitude(double factor, double scale) { return factor > 1 ? 0.1 * scale * std::log(factor) + 1 : 1; }

Fields object_of(const Fields& fields, const char* key) {
  if (!fields.raw(key).is_object()) throw InputError(expectation(fields.at(key), "an object", fields.raw(key).dump()));
  return {fields.raw(key), fields.at(key)};
}

void read_rope(const Fields& fields, ModelShape& shape, double theta, const char* theta_key) {
  shape.rope_theta = fields.real_or(theta_key, theta);
  for (const char* key : kRopeKeys) read_rope_object(fields, key, fields, shape);
}

void read_rope_object(const Fields& fields, const char* key, const Fields& config, ModelShape& shape) {
  if (!says_rope(fields, key)) return;
  const Fields rope = object_of(fields, key);
  for (const char* kind : {kFull, kSliding})
    if (rope.has(kind))
      throw InputError(expectation(rope.at(kind), "one rope for all layers", "an object for layers of that kind"));
  read_rope_scaling(rope, config, shape);
  shape.rope_theta = rope.real_or("rope_theta", shape.rope_theta);
}

void read_turned_part(const Fields& fields, const char* key, double fallback, Attention& attention) {
  double part = fields.real_or(key, fallback);
  for (const char* rope : kRopeKeys)
    if (says_rope(fields, rope)) part = object_of(fields, rope).real_or("partial_rotary_factor", part);
  attention.rotary_dim = static_cast<int64_t>(static_cast<double>(attention.head_dim) * part);
}

double turned_part(const Attention& attention) {
  return static_cast<double>(attention.turned()) / static_cast<double>(attention.head_dim);
}

Activation read_activation(const Fields& fields, const char* key, const char* fallback) {
  const std::string name = fields.text_or(key, fallback);
  const auto* found = std::ranges::find(kActivations, name, &NamedActivation::name);
  if (found != std::end(kActivations)) return found->activation;
  throw InputError(expectation(fields.at(key), fmt::format("one of {}", fmt::join(base::names_of(kActivations), ", ")),
                               "'" + name + "'"));
}

const char* activation_name(Activation activation) {
  const auto* found = std::ranges::find(kActivations, activation, &NamedActivation::activation);
  COLLIMATE_CHECK(found != std::end(kActivations), "an activation that needs a gate");
  return found->name.data();
}

ModelShape read_sizes(const Fields& fields, const std::string& family, const SizeKeys& keys) {
  for (const char* key : kRopeKeys)
    if (says_rope(fields, key))
      throw InputError(
          expectation(fields.at(key), "none: " + family + " has no RoPE that scales", fields.raw(key).dump()));
  return read_sizes_alone(fields, family, keys);
}

ModelShape read_sizes_alone(const Fields& fields, const std::string& family, const SizeKeys& keys) {
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

void add_sizes(const ModelShape& shape, const SizeKeys& keys, json& config) {
  config[keys.hidden] = shape.hidden;
  config[keys.layers] = shape.layers();
  config[keys.heads] = shape.blocks.front().attention.heads;
}

ModelShape read_usual_shape(const Fields& fields, const std::string& family, const UsualDefaults& defaults) {
  ModelShape shape;
  shape.family = family;
  shape.vocabulary = fields.count("vocab_size", kMaxCount);
  shape.hidden = fields.count("hidden_size", kMaxHidden);
  const int64_t layers = fields.count("num_hidden_layers", kMaxLayers);
  Block block;
  block.attention = read_attention(fields, shape.hidden, defaults.head_dim);
  block.mlp.intermediate = fields.count("intermediate_size", kMaxHidden);
  block.mlp.bias = fields.flag_or("mlp_bias", false);
  block.norm_epsilon = static_cast<float>(fields.real_or("rms_norm_eps", defaults.epsilon));
  shape.max_positions = fields.count_or("max_position_embeddings", kMaxCount, defaults.positions);
  shape.tied_embeddings = fields.flag_or("tie_word_embeddings", defaults.tied);
  const Experts experts = read_experts(fields, block.mlp.intermediate);
  const int64_t dense = experts.count > 0 ? fields.whole_or("first_k_dense_replace", layers, 0) : layers;
  shape.blocks.assign(static_cast<size_t>(dense), block);
  block.mlp.experts = experts;
  shape.blocks.resize(static_cast<size_t>(layers), block);
  return shape;
}

ModelShape read_swiglu_shape(const Fields& fields, const std::string& family, const UsualDefaults& defaults) {
  ModelShape shape = read_usual_shape(fields, family, defaults);
  read_rope(fields, shape, defaults.theta);
  fields.require("hidden_act", "silu");
  return shape;
}

Mlp plain_mlp(const Fields& fields, int64_t intermediate, const char* key, const char* fallback) {
  return {intermediate, /*gated=*/false, read_activation(fields, key, fallback), /*bias=*/true};
}

Mlp gpt2_mlp(const Fields& fields, const char* key, int64_t hidden, const char* activation) {
  return plain_mlp(fields, fields.count_or(key, kMaxHidden, 4 * hidden), "activation_function", activation);
}

void add_gpt2_mlp(const Mlp& mlp, const char* key, json& config) {
  config[key] = mlp.intermediate;
  config["activation_function"] = activation_name(mlp.activation);
}

void set_learned_positions(ModelShape& shape, int64_t positions) {
  shape.max_positions = positions;
  shape.learned_positions = true;
  for (Block& block : shape.blocks) block.attention.rotary = false;
}

void read_layer_norm(const Fields& fields, const char* key, Block& block) {
  block.norm = NormKind::kLayer;
  block.norm_epsilon = static_cast<float>(fields.real_or(key, 1e-5));
}

void add_layer_norm(const Block& block, const char* key, json& config) {
  config.erase("rms_norm_eps");
  config[key] = written_real(block.norm_epsilon);
}

double written_real(float real) { return std::stod(fmt::format("{}", real)); }

void add_usual_config(const ModelShape& shape, json& config) {
  const Block& block = shape.blocks.front();
  config["hidden_size"] = shape.hidden;
  config["num_hidden_layers"] = shape.layers();
  config["num_attention_heads"] = block.attention.heads;
  config["num_key_value_heads"] = block.attention.kv_heads;
  config["head_dim"] = block.attention.head_dim;
  config["intermediate_size"] = block.mlp.intermediate;
  config["max_position_embeddings"] = shape.max_positions;
  config["rms_norm_eps"] = written_real(block.norm_epsilon);
  config["rope_theta"] = shape.rope_theta;
  config["rope_scaling"] = shape.rope_scaling;
}

void add_swiglu_config(const ModelShape& shape, json& config) {
  add_usual_config(shape, config);
  config["hidden_act"] = "silu";
}

}  // namespace collimate::shape
