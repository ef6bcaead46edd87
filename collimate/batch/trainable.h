#pragma once

#include <vector>

#include "collimate/batch/batch.h"

namespace collimate::batch {

// The values of a row's trainable tokens, in order.
std::vector<float> at_trainable(const Batch& rows, const Key<float>& key, int64_t row);
// Gives those of all rows, one row behind the other: [M].
std::vector<float> at_trainable(const Batch& rows, const Key<float>& key);

}  // namespace collimate::batch
