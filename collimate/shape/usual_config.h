#pragma once

#include "collimate/shape/fields.h"
#include "collimate/shape/model_shape.h"

namespace collimate::shape {

// Most families' config.json says by these keys what a decoder is: sizes, heads, experts, latent attention, positions,
// biases. They are Llama's, and what later models added to them. InputError naming file and key.
ModelShape read_usual_shape(const Fields& fields, const std::string& family);
// Reads rope_theta and its scaling, where older and where newer configs say them.
void read_rope(const Fields& fields, ModelShape& shape);
// Adds the keys of a dense decoder that read_usual_shape reads.
void add_usual_config(const ModelShape& shape, nlohmann::json& config);

}  // namespace collimate::shape
