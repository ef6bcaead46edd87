#include <fmt/format.h>

#include <cmath>

#include "collimate/shape/family.h"
#include "collimate/shape/mixture.h"
#include "collimate/shape/usual_config.h"
#include "collimate/shape/usual_mixture.h"

namespace collimate::shape {
namespace {

using nlohmann::json;

// Reads Granite 3 (IBM 2024): a Llama with factors of embeddings, scores, logits and what each half adds. HyperCLOVA X
// (NAVER 2025) may also have norms behind the halves, and multiplies logits where Granite divides them.
ModelShape parse_factors(const Fields& fields, ModelShape shape) {
  const std::string& family = shape.family;
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

ModelShape parse_granite(const Fields& fields, const std::string& family) {
  return parse_factors(fields, read_swiglu_shape(fields, family));
}

// Reads Granite 3's mixtures: experts in every block and, in granitemoeshared, a part that every token passes.
ModelShape parse_granite_moe(const Fields& fields, const std::string& family) {
  ModelShape shape =
      parse_factors(fields, read_mixture(fields, family, {.normalized = true, .balance = read_balance(fields)}));
  for (Block& block : shape.blocks) {
    block.attention.bias = block.attention.output_bias = fields.flag_or("attention_bias", false);
    if (family == "granitemoeshared")
      block.mlp.experts.shared = fields.whole_or("shared_intermediate_size", kMaxHidden, 0);
  }
  return shape;
}

// Returns a quotient without its last digits, as a config would have it.
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

void add_granite_moe_config(const ModelShape& shape, json& config) {
  add_granite_config(shape, config);
  const Experts& experts = *experts_of(shape);
  config.erase("mlp_bias");
  config["intermediate_size"] = experts.intermediate;
  config["num_local_experts"] = experts.count;
  config["num_experts_per_tok"] = experts.per_token;
  config["router_aux_loss_coef"] = experts.balance;
  if (shape.family == "granitemoeshared") config["shared_intermediate_size"] = experts.shared;
}

ModuleNames granite_moe_names() {
  ModuleNames names =
      expert_names("block_sparse_moe.router.layer", "block_sparse_moe.experts.", {"input_linear"}, "output_linear");
  names.stacked_up = "block_sparse_moe.input_linear.weight";
  names.stacked_down = "block_sparse_moe.output_linear.weight";
  names.shared_up = {"shared_mlp.input_linear"};
  names.shared_down = "shared_mlp.output_linear";
  return names;
}

}  // namespace

std::vector<Family> granite_families() {
  ModuleNames names = llama_names();
  names.behind_attention = "post_norm1";
  names.behind_mlp = "post_norm2";
  return {family_of("granite", "Granite", parse_granite, add_granite_config, llama_names()),
          family_of("hyperclovax", "HyperCLOVAX", parse_granite, add_granite_config, names),
          family_of("granitemoe", "GraniteMoe", parse_granite_moe, add_granite_moe_config, granite_moe_names()),
          family_of("granitemoeshared", "GraniteMoeShared", parse_granite_moe, add_granite_moe_config,
                    granite_moe_names())};
}

}  // namespace collimate::shape
