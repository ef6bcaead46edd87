#pragma once

#include <string>
#include <vector>

#include "collimate/shape/family.h"
#include "collimate/shape/usual_config.h"

namespace collimate::shape {

// Reads what families of mixtures have in common: Llama with experts in place of the MLPs. Where no key makes a block
// dense, all have them, and route as `how` says; InputError where none has experts.
ModelShape read_mixture(const Fields& fields, const std::string& family, const Experts& how,
                        const UsualDefaults& defaults = {});
// The weight of the loss that spreads tokens over experts, where training names none.
double read_balance(const Fields& fields, double fallback = 0.001);
// Routing as DeepSeek-V3 has it (DeepSeek-AI 2024): by sigmoids that a bias corrects, of groups.
Experts read_grouped_routing(const Fields& fields);
// Adds the keys of experts that DeepSeek's models and those after them have.
void add_grouped_config(const ModelShape& shape, nlohmann::json& config);
std::vector<int64_t> dense_layers(const ModelShape& shape);
// Llama's names with those of experts: of the router, of what is ahead of an expert's number, and in an expert.
ModuleNames expert_names(const std::string& router, const std::string& experts, const std::vector<std::string>& up,
                         const std::string& down);
// Such names as Qwen's and DeepSeek's files have; `shared` is the module that every token passes.
ModuleNames mixture_names(const std::string& shared);

}  // namespace collimate::shape
