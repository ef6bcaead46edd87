#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "collimate/shape/param_spec.h"

namespace collimate::model {

// Describes a tensor of a family's files: it holds one parameter, or one of each expert of a block one after another.
struct FileTensor {
  std::string name;
  std::vector<int64_t> sizes;
  std::vector<size_t> params;  // indices of its parameters, which all have equally many values
  int64_t count() const;
};

// Returns all tensors of a model's files, in the order of their first parameters.
std::vector<FileTensor> file_tensors(std::span<const shape::ParamSpec> specs);
// Returns the name of the file tensor that holds a parameter.
const std::string& name_in_file(const shape::ParamSpec& spec);

}  // namespace collimate::model
