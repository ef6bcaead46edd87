#pragma once

#include "collimate/shape/param_spec.h"

namespace collimate::shape {

inline int64_t parameter_count(const ModelShape& shape) {
  int64_t total = 0;
  for (const ParamSpec& spec : param_specs(shape)) total += spec.count();
  return total;
}

}  // namespace collimate::shape
