#pragma once

#include <cstdint>

#include "collimate/batch/key.h"

namespace collimate::rlhf {

// 1 of the greedy sample of a prompt with whose reward those of the others are compared (ReMax), 0 of these.
inline const batch::Key<int32_t> kBaselineSample{"baseline_sample"};

}  // namespace collimate::rlhf
