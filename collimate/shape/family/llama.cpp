#include "collimate/base/error.h"
#include "collimate/shape/family.h"
#include "collimate/shape/usual_config.h"

namespace collimate::shape {
namespace {

using base::expectation;
using base::InputError;

void reject_sliding_window(const Fields& fields, const ModelShape& shape) {
  if (!fields.has("sliding_window") || (shape.family == "qwen2" && !fields.flag_or("use_sliding_window", false)))
    return;
  if (fields.count("sliding_window", kMaxCount) < shape.max_positions)
    throw InputError(expectation(fields.at("sliding_window"), "null or at least max_position_embeddings",
                                 fields.raw("sliding_window").dump(), "lowering max_position_embeddings to it"));
}

// Llama (Touvron et al. 2023), and Mistral and Qwen2, which differ from it by biases: Qwen2 has those of queries, keys
// and values whatever its config says, and neither has others.
ModelShape parse_llama(const Fields& fields, const std::string& family) {
  ModelShape shape = read_usual_shape(fields, family);
  read_rope(fields, shape);
  reject_sliding_window(fields, shape);
  if (const std::string activation = fields.text_or("hidden_act", "silu"); activation != "silu")
    throw InputError(expectation(fields.at("hidden_act"), "silu", "'" + activation + "'"));
  for (Block& block : shape.blocks) {
    if (family == "llama") continue;
    block.attention.bias = family == "qwen2" || block.attention.bias;
    block.attention.output_bias = block.mlp.bias = false;
  }
  return shape;
}

void add_llama_config(const ModelShape& shape, nlohmann::json& config) {
  add_usual_config(shape, config);
  config["hidden_act"] = "silu";
  if (shape.family == "llama") {
    config["attention_bias"] = shape.blocks.front().attention.bias;
    config["mlp_bias"] = shape.blocks.front().mlp.bias;
  } else {
    config["sliding_window"] = nullptr;
  }
}

Family member(const char* name, const std::string& classes) {
  return {name,
          classes + "ForCausalLM",
          classes + "ForSequenceClassification",
          parse_llama,
          add_llama_config,
          {.embedding = "model.embed_tokens",
           .block = "model.layers.",
           .attention_norm = "input_layernorm",
           .query_key_value = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"},
           .attention_output = "self_attn.o_proj",
           .mlp_norm = "post_attention_layernorm",
           .up = {"mlp.gate_proj", "mlp.up_proj"},
           .down = "mlp.down_proj",
           .final_norm = "model.norm"}};
}

}  // namespace

std::vector<Family> llama_families() {
  return {member("llama", "Llama"), member("mistral", "Mistral"), member("qwen2", "Qwen2")};
}

}  // namespace collimate::shape
