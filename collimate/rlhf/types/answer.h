#pragma once

#include "collimate/batch/key.h"

namespace collimate::rlhf {

// Each row has the hash of the answer that its completion gives: equal answers have equal hashes and vote together.
inline const batch::Key<int64_t> kAnswer{"answer"};

}  // namespace collimate::rlhf
