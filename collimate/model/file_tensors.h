#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "collimate/shape/param_spec.h"

namespace collimate::model {

// A tensor of a family's files: one parameter's, or those of all of a block's experts one behind another.
struct FileTensor {
  std::string name;
  std::vector<int64_t> sizes;
  std::vector<size_t> params;  // numbers of its parameters, which all have as many values
  int64_t count() const;
};

// All of a model's, in the order of their first parameters.
std::vector<FileTensor> file_tensors(std::span<const shape::ParamSpec> specs);
// Names the tensor of the files that holds a parameter.
const std::string& name_in_file(const shape::ParamSpec& spec);

}  // namespace collimate::model
