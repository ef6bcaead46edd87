#include <algorithm>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/shape/mixture.h"
#include "collimate/shape/usual_config.h"
#include "collimate/shape/usual_mixture.h"
#include "collimate/shape/usual_windows.h"

namespace collimate::shape {
namespace {

using base::expectation;
using base::InputError;
using nlohmann::json;

// Reads a list of layers, such as mlp_only_layers.
std::vector<int64_t> read_layers(const Fields& fields, const char* key) {
  if (!fields.has(key)) return {};
  const json& list = fields.raw(key);
  const bool good = list.is_array() && std::all_of(list.begin(), list.end(), [](const json& layer) {
                      return layer.is_number_integer() && layer >= 0 && layer < kMaxLayers;
                    });
  if (!good) throw InputError(expectation(fields.at(key), "a list of layers", list.dump()));
  return list.get<std::vector<int64_t>>();
}

// Reads Mixtral (Jiang et al. 2024).
ModelShape parse_mixtral(const Fields& fields, const std::string& family) {
  if (fields.has("router_jitter_noise") && fields.raw("router_jitter_noise") != 0)
    throw InputError(expectation(fields.at("router_jitter_noise"), "0", fields.raw("router_jitter_noise").dump(),
                                 "a model that is trained without noise of its router"));
  ModelShape shape =
      read_mixture(fields, family, {.normalized = true, .balance = read_balance(fields)}, {.theta = 1e6});
  set_windows(shape, read_window_or(fields, 0), every_layer);
  return shape;
}

// Makes the blocks dense that mlp_only_layers names, and those between the steps of decoder_sparse_step.
void read_dense_layers(const Fields& fields, ModelShape& shape) {
  const std::vector<int64_t> dense = read_layers(fields, "mlp_only_layers");
  const int64_t step = fields.count_or("decoder_sparse_step", kMaxLayers, 1);
  for (int64_t layer = 0; layer < shape.layers(); ++layer)
    if ((layer + 1) % step != 0 || std::find(dense.begin(), dense.end(), layer) != dense.end())
      base::at(shape.blocks, layer).mlp.experts = {};
}

// Reads the windows. Qwen3-MoE has one in every block, Qwen2-MoE in those that layer_types names. Without layer_types
// Qwen2-MoE has one, as transformers reads it, in every second block ahead of max_window_layers.
void read_qwen_windows(const Fields& fields, ModelShape& shape) {
  const int64_t window = read_qwen_window(fields);
  if (shape.family != "qwen2_moe") return set_windows(shape, window, every_layer);
  const int64_t end = fields.whole_or("max_window_layers", kMaxLayers, 28);
  read_windows(fields, shape, window, [end](int64_t layer) { return layer % 2 == 0 && layer < end; });
}

// Reads Qwen2-MoE (Qwen1.5-MoE, 2024) and Qwen3-MoE (Yang et al. 2025), with the attention of Qwen2 and Qwen3.
ModelShape parse_qwen_moe(const Fields& fields, const std::string& family) {
  const bool is_second = family == "qwen2_moe";
  if (is_second) fields.count("shared_expert_intermediate_size", kMaxHidden);
  ModelShape shape = read_mixture(fields, family,
                                  {.shared_gate = is_second,
                                   .normalized = fields.flag_or("norm_topk_prob", false),
                                   .balance = read_balance(fields)});
  read_dense_layers(fields, shape);
  read_qwen_windows(fields, shape);
  for (Block& block : shape.blocks) {
    block.attention.bias = is_second ? fields.flag_or("qkv_bias", true) : fields.flag_or("attention_bias", false);
    block.attention.output_bias = !is_second && block.attention.bias;
    block.attention.head_norm = !is_second;
  }
  return shape;
}

// Reads dots.llm1 (Huo et al. 2025): the attention of Qwen3, and experts with DeepSeek-V3's routing.
ModelShape parse_dots(const Fields& fields, const std::string& family) {
  ModelShape shape = read_mixture(fields, family, read_grouped_routing(fields));
  const int64_t first = fields.whole_or("max_window_layers", kMaxLayers, shape.layers());
  read_windows(fields, shape, read_window_or(fields, 0), [first](int64_t layer) { return layer >= first; });
  for (Block& block : shape.blocks) {
    block.attention.bias = block.attention.output_bias = fields.flag_or("attention_bias", false);
    block.attention.head_norm = true;
  }
  return shape;
}

void add_mixture_config(const ModelShape& shape, json& config) {
  add_swiglu_config(shape, config);
  config["num_experts_per_tok"] = experts_of(shape)->per_token;
  if (shape.family != "dots1") config["router_aux_loss_coef"] = experts_of(shape)->balance;
  add_window_size(shape, config);
}

void add_mixtral_config(const ModelShape& shape, json& config) {
  add_mixture_config(shape, config);
  const Experts& experts = *experts_of(shape);
  config["intermediate_size"] = experts.intermediate;
  config["num_local_experts"] = experts.count;
}

void add_qwen_moe_config(const ModelShape& shape, json& config) {
  add_mixture_config(shape, config);
  const Experts& experts = *experts_of(shape);
  config["num_experts"] = experts.count;
  config["moe_intermediate_size"] = experts.intermediate;
  config["norm_topk_prob"] = experts.normalized;
  config["mlp_only_layers"] = dense_layers(shape);
  config["decoder_sparse_step"] = 1;
  config["use_sliding_window"] = !config["sliding_window"].is_null();
  if (shape.family == "qwen2_moe") {
    config["shared_expert_intermediate_size"] = experts.shared;
    add_layer_types(shape, config);
  }
  config[shape.family == "qwen2_moe" ? "qkv_bias" : "attention_bias"] = shape.blocks.back().attention.bias;
}

void add_dots_config(const ModelShape& shape, json& config) {
  add_mixture_config(shape, config);
  add_grouped_config(shape, config);
  add_window_layers(shape, config);
}

Family member(const char* name, const std::string& classes, decltype(Family::parse) parse,
              decltype(Family::add_config) add_config, const ModuleNames& names) {
  return with_usual_keys(family_of(name, classes, parse, add_config, names));
}

}  // namespace

std::vector<Family> mixture_families() {
  return {member("mixtral", "Mixtral", parse_mixtral, add_mixtral_config,
                 expert_names("block_sparse_moe.gate", "block_sparse_moe.experts.", {"w1", "w3"}, "w2")),
          member("qwen2_moe", "Qwen2Moe", parse_qwen_moe, add_qwen_moe_config, mixture_names("mlp.shared_expert")),
          member("qwen3_moe", "Qwen3Moe", parse_qwen_moe, add_qwen_moe_config, mixture_names("")),
          member("dots1", "Dots1", parse_dots, add_dots_config, mixture_names("mlp.shared_experts"))};
}

}  // namespace collimate::shape
