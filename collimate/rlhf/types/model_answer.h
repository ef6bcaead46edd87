#pragma once

#include <cstdint>

#include "collimate/batch/key.h"

namespace collimate::rlhf {

// A row of data has 1 if the model is to answer its prompt for people who read samples, else 0.
inline const batch::Key<uint8_t> kAsked{"asked"};
// The tokens of the model's own answer; other rows have none.
inline const batch::Key<int32_t> kModelAnswer{.name = "model_answer", .ragged = true};

}  // namespace collimate::rlhf
