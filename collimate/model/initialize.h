#pragma once

#include <cstdint>
#include <span>

#include "collimate/shape/param_spec.h"

namespace collimate::model {

// Writes the first values of one parameter: Normal(0, std) for matrices and embeddings, zeros for biases and for the
// score head, ones for norms. A value depends on (seed, name, index) alone, so any shard can be made by itself.
void initialize_param(const shape::ParamSpec& spec, uint64_t seed, float std, std::span<float> values);

// Returns Σ hash(name, index)·bits mod 2^64 over a parameter's values.
uint64_t param_checksum(const std::string& name, std::span<const float> values);

}  // namespace collimate::model
