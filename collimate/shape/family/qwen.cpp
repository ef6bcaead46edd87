#include "collimate/base/error.h"
#include "collimate/shape/family.h"
#include "collimate/shape/usual_config.h"

namespace collimate::shape {
namespace {

using base::expectation;
using base::InputError;

// Reads Qwen 1 (Bai et al. 2023). Its intermediate_size counts gate and up together. Its dynamic RoPE and logarithmic
// scores act only beyond seq_length, where nothing runs here.
ModelShape parse_qwen(const Fields& fields, const std::string& family) {
  ModelShape shape = read_sizes(fields, family, kUsualSizes);
  shape.max_positions = fields.count_or("seq_length", kMaxCount, 2048);
  shape.tied_embeddings = fields.flag_or("tie_word_embeddings", false);
  shape.rope_theta = fields.real_or("rotary_emb_base", 10000.0);
  fields.require("no_bias", true);
  if (const double part = fields.real_or("rotary_pct", 1.0); part != 1.0)
    throw InputError(expectation(fields.at("rotary_pct"), "1", fmt::format("{}", part)));
  for (Block& block : shape.blocks) {
    block.norm_epsilon = static_cast<float>(fields.real_or("layer_norm_epsilon", 1e-6));
    block.attention.head_dim = fields.count_or("kv_channels", kMaxHidden, block.attention.head_dim);
    block.attention.bias = true;
    block.mlp.intermediate = fields.count("intermediate_size", kMaxHidden) / 2;
  }
  return shape;
}

void add_qwen_config(const ModelShape& shape, nlohmann::json& config) {
  const Block& block = shape.blocks.front();
  add_sizes(shape, kUsualSizes, config);
  config["kv_channels"] = block.attention.head_dim;
  config["intermediate_size"] = 2 * block.mlp.intermediate;
  config["seq_length"] = shape.max_positions;
  config["layer_norm_epsilon"] = written_real(block.norm_epsilon);
  config["rotary_emb_base"] = shape.rope_theta;
  config["no_bias"] = true;
  // These are classes of its published files, because transformers has none of its own.
  config["auto_map"] = {{"AutoConfig", "configuration_qwen.QWenConfig"},
                        {"AutoModelForCausalLM", "modeling_qwen.QWenLMHeadModel"}};
}

}  // namespace

std::vector<Family> qwen_families() {
  ModuleNames names = gpt2_names();
  names.up = {"mlp.w2", "mlp.w1"};
  return {{"qwen", "QWenLMHeadModel", "QWenForSequenceClassification", parse_qwen, add_qwen_config, names}};
}

}  // namespace collimate::shape
