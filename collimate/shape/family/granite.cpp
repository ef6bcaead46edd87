#include <fmt/format.h>

#include <cmath>

#include "collimate/shape/family.h"
#include "collimate/shape/usual_config.h"

namespace collimate::shape {
namespace {

using nlohmann::json;

// Granite 3 (IBM 2024): a Llama with factors of embeddings, scores, what each half adds, and logits.
// HyperCLOVA X (NAVER 2025) has norms behind the halves too, or none, and multiplies logits where Granite divides them.
ModelShape parse_granite(const Fields& fields, const std::string& family) {
  ModelShape shape = read_swiglu_shape(fields, family);
  const bool clova = family == "hyperclovax";
  const double logits = fields.real_or("logits_scaling", 1);
  shape.embedding_scale = fields.real_or("embedding_multiplier", 1);
  shape.logit_scale = clova ? logits : 1 / logits;
  for (Block& block : shape.blocks) {
    const double of_heads = 1 / std::sqrt(static_cast<double>(block.attention.head_dim));
    block.attention.scale = fields.real_or("attention_multiplier", clova ? of_heads : 1);
    block.added_scale = fields.real_or("residual_multiplier", 1);
    if (clova && fields.flag_or("use_post_norm", true)) block.place = NormPlace::kAround;
  }
  return shape;
}

// As a config has it: without the last digits of a quotient.
double short_real(double real) { return std::stod(fmt::format("{:.12g}", real)); }

void add_granite_config(const ModelShape& shape, json& config) {
  const Block& block = shape.blocks.front();
  const bool clova = shape.family == "hyperclovax";
  add_swiglu_config(shape, config);
  config["attention_bias"] = block.attention.bias;
  config["mlp_bias"] = block.mlp.bias;
  config["embedding_multiplier"] = shape.embedding_scale;
  config["logits_scaling"] = clova ? shape.logit_scale : short_real(1 / shape.logit_scale);
  config["attention_multiplier"] =
      block.attention.scale > 0 ? block.attention.scale : 1 / std::sqrt(static_cast<double>(block.attention.head_dim));
  config["residual_multiplier"] = block.added_scale;
  if (clova) config["use_post_norm"] = block.place == NormPlace::kAround;
}

}  // namespace

std::vector<Family> granite_families() {
  ModuleNames names = llama_names();
  names.behind_attention = "post_norm1";
  names.behind_mlp = "post_norm2";
  return {family_of("granite", "Granite", parse_granite, add_granite_config, llama_names()),
          family_of("hyperclovax", "HyperCLOVAX", parse_granite, add_granite_config, names)};
}

}  // namespace collimate::shape
