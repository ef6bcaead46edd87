#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "collimate/batch/batch.h"

namespace collimate::flow {

// Returns the optimizer updates of one call of a train function: the rows are sorted by uid and cut into runs of
// `rows_per_update` (0: all), `epochs` times (1). Each later epoch has another order that depends on uids alone; the
// last update of an epoch may be smaller. Inside an update rows are sorted by uid. The two rows of a preference pair
// stay together, in row order. Throws InputError when rows_per_update would cut a pair.
std::vector<Batch> cut_updates(const Batch& rows, const nlohmann::json& parameters);

// Returns how many rows a split must keep together: 2 when they are preference pairs, else 1.
int64_t pair_size(const Batch& rows);

}  // namespace collimate::flow
