#pragma once

#include <span>
#include <string>
#include <vector>

#include "collimate/model/safetensors.h"
#include "collimate/shape/param_spec.h"

namespace collimate::model {

// A parameter's values as the family's files have them: [in, out] in some, rows of heads in another order in others.
std::vector<int64_t> file_sizes(const shape::ParamSpec& spec);
// Whether they are so in this entry.
bool is_transposed(const shape::ParamSpec& spec, const TensorEntry& entry);
// Whether two entries of equal sizes have the same values. InputError as of read_floats.
bool have_equal_values(const TensorEntry& a, const TensorEntry& b, const std::string& where);
// All of an entry, widened to fp32, in our order. InputError as of read_floats.
void read_param(const shape::ParamSpec& spec, const TensorEntry& entry, const std::string& where, std::span<float> out);
// InputError naming the entry where one of its values, or of those of a part of it, is NaN or infinite.
void check_finite(const TensorEntry& entry, const std::string& where, std::span<const float> values);
// Values in our order to the file's.
void to_file_order(const shape::ParamSpec& spec, std::span<const float> values, std::span<float> out);

}  // namespace collimate::model
