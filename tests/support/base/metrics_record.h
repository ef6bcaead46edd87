#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "collimate/base/metrics.h"

namespace collimate::base {

inline MetricsRecord record_of(int64_t step, const std::vector<std::pair<std::string, double>>& values) {
  MetricsRecord record;
  record.step = step;
  for (const auto& [name, value] : values) record.set(name, value);
  return record;
}

}  // namespace collimate::base
