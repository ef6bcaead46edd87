#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collimate/plan/inputs/constants.h"

namespace collimate::plan {

// A back end is what is known of the software that some model is run by, beside the defaults of constant_table().
struct Backend {
  std::string name;
  bool fitted = false;  // by bench/published: values has all of its fitted_members()
  std::vector<std::pair<double Constants::*, double>> values;
  std::string source;
};
const std::vector<Backend>& backends();
// Collimate on CPU devices. A request for such devices that names no back end has its constants.
constexpr std::string_view kOwnCpuBackend = "collimate-cpu";
// InputError with the nearest name.
const Backend& find_backend(std::string_view name);

}  // namespace collimate::plan
