#pragma once

#include <vector>

#include "collimate/batch/batch.h"

namespace collimate::batch {

// Returns a column's values at the trainable tokens of one row, in order.
std::vector<float> at_trainable(const Batch& rows, const Key<float>& key, int64_t row);
// Returns a column's values at the trainable tokens of all rows, one row behind the other: [M].
std::vector<float> at_trainable(const Batch& rows, const Key<float>& key);

}  // namespace collimate::batch
