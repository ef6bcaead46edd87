#pragma once

#include <span>
#include <string>
#include <vector>

#include "collimate/model/safetensors.h"
#include "collimate/shape/param_spec.h"

namespace collimate::model {

// Returns a parameter's sizes in the family's files. Some families' files have matrices as [in, out], others have rows
// of heads in another order than we do.
std::vector<int64_t> file_sizes(const shape::ParamSpec& spec);
// Returns whether the entry has the parameter as [in, out].
bool is_transposed(const shape::ParamSpec& spec, const TensorEntry& entry);
// Returns whether two entries of equal sizes have the same values. Throws InputError as read_floats.
bool have_equal_values(const TensorEntry& a, const TensorEntry& b, const std::string& where);
// Reads all of an entry, widened to fp32, in our order. Throws InputError as read_floats.
void read_param(const shape::ParamSpec& spec, const TensorEntry& entry, const std::string& where, std::span<float> out);
// Throws InputError naming the entry when one of `values`, which are the entry's or a part of them, is NaN or infinite.
void check_finite(const TensorEntry& entry, const std::string& where, std::span<const float> values);
// Copies a parameter's values from our order to the file's.
void to_file_order(const shape::ParamSpec& spec, std::span<const float> values, std::span<float> out);

}  // namespace collimate::model
