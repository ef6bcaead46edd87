// Tests of costs are made of these.
#pragma once

#include <string>

#include "collimate/plan/cost/memory.h"

namespace collimate::plan::testing_support {

inline Job job_of(const char* model, Work work, int devices, const char* gpu = "A100-80") {
  return {shape::find_outline(model), work, true, DeviceKinds().find(gpu), 8, devices, {}};
}

inline Execution cut(int tp, int pp, int zero = 0) {
  Execution how;
  how.layout.tp = tp;
  how.layout.pp = pp;
  how.layout.zero = zero;
  return how;
}

// Bytes; -1 where there is no such item.
inline double item(const MemoryBound& bound, const std::string& what) {
  for (const auto* items : {&bound.resident, &bound.transient, &bound.passing})
    for (const MemoryItem& found : *items)
      if (found.what == what) return found.bytes;
  return -1;
}

}  // namespace collimate::plan::testing_support
