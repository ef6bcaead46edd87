#pragma once

#include <cstdint>

#include "collimate/batch/key.h"

namespace collimate::rlhf {

// A row of data brings `asked`: 1 where the model is to answer the row's prompt itself, for people who read samples.
inline const batch::Key<uint8_t> kAsked{"asked"};
// The tokens of that answer; none in the other rows.
inline const batch::Key<int32_t> kModelAnswer{.name = "model_answer", .ragged = true};

}  // namespace collimate::rlhf
