#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace collimate::golden {

using nlohmann::json;

// One check per shape of golden: that all which its replay reads is there, of its type and size, and that ids are below
// `vocabulary`. InputError that names the place. `kind`: as trainer_kind says.
void check_steps(const json& golden, const std::string& kind, int64_t vocabulary);
void check_dpo_variants(const json& golden, const std::string& kind, int64_t vocabulary);
void check_rollouts(const json& golden, const std::string& kind, int64_t vocabulary);
void check_policy_variants(const json& golden, const std::string& kind, int64_t vocabulary);
void check_ppo(const json& golden, const std::string& kind, int64_t vocabulary);
void check_ppo_arrays(const json& golden, const std::string& kind, int64_t vocabulary);

}  // namespace collimate::golden
