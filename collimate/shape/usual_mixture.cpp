#include "collimate/shape/usual_mixture.h"

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/shape/mixture.h"

namespace collimate::shape {

ModelShape read_mixture(const Fields& fields, const std::string& family, const Experts& how,
                        const UsualDefaults& defaults) {
  ModelShape shape = read_swiglu_shape(fields, family, defaults);
  for (Block& block : shape.blocks) {
    block.attention.bias = block.attention.output_bias = block.mlp.bias = false;
    Experts& experts = block.mlp.experts;
    if (experts.count == 0) continue;
    Experts routed = how;
    routed.count = experts.count;
    routed.per_token = experts.per_token;
    routed.intermediate = experts.intermediate;
    routed.shared = experts.shared;
    experts = routed;
  }
  if (experts_of(shape) == nullptr)
    throw base::InputError(base::expectation(fields.at("experts"), "two or more, and a block that has them", "none",
                                             "a model of a dense family"));
  return shape;
}

double read_balance(const Fields& fields, double fallback) {
  constexpr const char* kBalance = "router_aux_loss_coef";
  return fields.has(kBalance) && fields.raw(kBalance) == 0 ? 0 : fields.real_or(kBalance, fallback);
}

Experts read_grouped_routing(const Fields& fields) {
  Experts how = {.sigmoid = true, .corrected = true, .normalized = fields.flag_or("norm_topk_prob", false)};
  how.groups = fields.count_or("n_group", kMaxCount, 1);
  how.chosen_groups = fields.count_or("topk_group", how.groups, 1);
  how.scale = fields.real_or("routed_scaling_factor", 1.0);
  return how;
}

void add_grouped_config(const ModelShape& shape, nlohmann::json& config) {
  const Experts& experts = *experts_of(shape);
  config["hidden_act"] = "silu";
  config["num_experts_per_tok"] = experts.per_token;
  config["n_routed_experts"] = experts.count;
  config["moe_intermediate_size"] = experts.intermediate;
  config["n_shared_experts"] = experts.shared / experts.intermediate;
  config["first_k_dense_replace"] = dense_layers(shape).size();
  config["norm_topk_prob"] = experts.normalized;
  config["n_group"] = experts.groups;
  config["topk_group"] = experts.chosen_groups;
  config["routed_scaling_factor"] = experts.scale;
  config["attention_bias"] = shape.blocks.front().attention.bias;
}

std::vector<int64_t> dense_layers(const ModelShape& shape) {
  std::vector<int64_t> dense;
  for (int64_t layer = 0; layer < shape.layers(); ++layer)
    if (!has_experts(base::at(shape.blocks, layer))) dense.push_back(layer);
  return dense;
}

ModuleNames expert_names(const std::string& router, const std::string& experts, const std::vector<std::string>& up,
                         const std::string& down) {
  ModuleNames names = llama_names();
  names.router = router;
  names.experts = experts;
  names.expert_up = up;
  names.expert_down = down;
  return names;
}

ModuleNames mixture_names(const std::string& shared) {
  ModuleNames names = expert_names("mlp.gate", "mlp.experts.", {"gate_proj", "up_proj"}, "down_proj");
  names.shared_up = {shared + ".gate_proj", shared + ".up_proj"};
  names.shared_down = shared + ".down_proj";
  names.shared_gate = shared + "_gate";
  return names;
}

}  // namespace collimate::shape
