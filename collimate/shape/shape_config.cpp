#include "collimate/shape/model_shape.h"
#include "collimate/shape/param_spec.h"

namespace collimate::shape {
namespace {

using nlohmann::json;

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

void add_gpt2_config(const ModelShape& shape, json& config) {
  config["n_embd"] = shape.hidden;
  config["n_layer"] = shape.layers;
  config["n_head"] = shape.heads;
  config["n_inner"] = shape.intermediate;
  config["n_positions"] = config["n_ctx"] = shape.max_positions;
  config["layer_norm_epsilon"] = static_cast<double>(shape.norm_epsilon);
  config["activation_function"] = shape.activation;
  config["scale_attn_weights"] = true;
}

std::string class_name(const ModelShape& shape) {
  static const std::vector<std::pair<std::string, std::string>> kNames = {
      {"llama", "Llama"}, {"mistral", "Mistral"}, {"qwen2", "Qwen2"}, {"gpt2", "GPT2"}};
  std::string name;
  for (const auto& [family, stem] : kNames)
    if (family == shape.family) name = stem;
  if (shape.head != Head::kLanguageModel) return name + "ForSequenceClassification";
  return shape.family == "gpt2" ? "GPT2LMHeadModel" : name + "ForCausalLM";
}

}  // namespace

json to_config(const ModelShape& shape) {
  json config = {{"architectures", {class_name(shape)}},
                 {"model_type", shape.family},
                 {"vocab_size", shape.vocabulary},
                 {"tie_word_embeddings", shape.tied_embeddings},
                 {"torch_dtype", "float32"}};
  shape.family == "gpt2" ? add_gpt2_config(shape, config) : add_llama_config(shape, config);
  if (shape.eos_ids.size() == 1) config["eos_token_id"] = shape.eos_ids[0];
  if (shape.eos_ids.size() > 1) config["eos_token_id"] = shape.eos_ids;
  if (shape.bos_id >= 0) config["bos_token_id"] = shape.bos_id;
  if (shape.pad_id >= 0) config["pad_token_id"] = shape.pad_id;
  if (shape.head != Head::kLanguageModel) {
    config["num_labels"] = 1;
    config["id2label"] = {{"0", "LABEL_0"}};
    config["label2id"] = {{"LABEL_0", 0}};
    config["collimate_head"] = head_name(shape.head);
  }
  return config;
}

int64_t parameter_count(const ModelShape& shape) {
  int64_t total = 0;
  for (const ParamSpec& spec : param_specs(shape)) total += spec.count();
  return total;
}

double forward_flops(const ModelShape& shape, int64_t tokens, int64_t context) {
  double weights = 0;
  for (const ParamSpec& spec : param_specs(shape))
    if (spec.kind == ParamKind::kLinear) weights += static_cast<double>(spec.count());
  if (shape.tied_embeddings && shape.head == Head::kLanguageModel)
    weights += static_cast<double>(shape.vocabulary * shape.hidden);
  const double keys = (static_cast<double>(context) + 1) / 2;  // causal: the mean over the rows
  const double attention = 2.0 * static_cast<double>(shape.layers * shape.heads * shape.head_dim) * keys;
  return 2.0 * static_cast<double>(tokens) * (weights + attention);
}

}  // namespace collimate::shape
