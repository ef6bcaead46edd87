#pragma once

#include <string>
#include <vector>

#include "collimate/shape/family.h"
#include "collimate/shape/usual_config.h"

namespace collimate::shape {

// Reads a family of mixtures: Llama with experts in place of the MLPs, which route as `how` says. All blocks have
// experts, except those that first_k_dense_replace makes dense. Throws InputError where no block has experts.
ModelShape read_mixture(const Fields& fields, const std::string& family, const Experts& how,
                        const UsualDefaults& defaults = {});
// Reads the weight of the loss that spreads tokens over experts, which holds where training names none.
double read_balance(const Fields& fields, double fallback = 0.001);
// Reads routing as in DeepSeek-V3 (DeepSeek-AI 2024): by sigmoids that a bias corrects, within groups.
Experts read_grouped_routing(const Fields& fields);
// Adds the keys of experts that DeepSeek's models and their successors have.
void add_grouped_config(const ModelShape& shape, nlohmann::json& config);
std::vector<int64_t> dense_layers(const ModelShape& shape);
// Returns Llama's names with those of experts: the router, what comes before an expert's number, and the names inside
// an expert.
ModuleNames expert_names(const std::string& router, const std::string& experts, const std::vector<std::string>& up,
                         const std::string& down);
// Returns such names as in Qwen's and DeepSeek's files; `shared` is the module of the experts that every token passes.
ModuleNames mixture_names(const std::string& shared);

}  // namespace collimate::shape
