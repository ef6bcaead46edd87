#pragma once

#include <string>
#include <vector>

#include "collimate/shape/family.h"

namespace collimate::shape {

// Reads what families of mixtures have in common: Llama with experts in place of the MLPs. Where no key makes a block
// dense, all have them, and route as `how` says; `theta` is the rope's base where a config says none. InputError where
// none has experts.
ModelShape read_mixture(const Fields& fields, const std::string& family, const Experts& how, double theta = 1e4);
// The weight of the loss that spreads tokens over experts, where training names none.
double read_balance(const Fields& fields, double fallback = 0.001);
// Routing as DeepSeek-V3 has it (DeepSeek-AI 2024): by sigmoids that a bias corrects, of groups.
Experts read_grouped_routing(const Fields& fields);
// Adds the keys of experts that DeepSeek's models and those after them have.
void add_grouped_config(const ModelShape& shape, nlohmann::json& config);
std::vector<int64_t> dense_layers(const ModelShape& shape);
// Llama's names with those of experts; `shared` is the module that every token passes.
ModuleNames mixture_names(const std::string& shared);

}  // namespace collimate::shape
