#pragma once

#include <cstdint>

#include "collimate/batch/key.h"

namespace collimate::rlhf {

// The column is 1 for a prompt's greedy sample, whose reward is the baseline for the other samples (ReMax), and 0 for
// the others.
inline const batch::Key<int32_t> kBaselineSample{"baseline_sample"};

}  // namespace collimate::rlhf
