#pragma once

#include "collimate/batch/key.h"

namespace collimate::rlhf {

// Hash of what a completion answers: equal for equal answers, which vote together.
inline const batch::Key<int64_t> kAnswer{"answer"};

}  // namespace collimate::rlhf
