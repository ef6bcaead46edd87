#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collimate/plan/inputs/constants.h"

namespace collimate::plan {

// A Backend says what is known of some software that runs models, where it differs from the defaults of
// constant_table().
struct Backend {
  std::string name;
  bool fitted = false;  // by bench/published; then values has all of its fitted_members()
  std::vector<std::pair<double Constants::*, double>> values;
  std::string source;
};
const std::vector<Backend>& backends();
// kOwnCpuBackend names Collimate on CPU devices. A request for such devices that names no back end takes these
// constants.
constexpr std::string_view kOwnCpuBackend = "collimate-cpu";
// Returns a back end by its name. Throws InputError with the nearest name.
const Backend& find_backend(std::string_view name);

}  // namespace collimate::plan
