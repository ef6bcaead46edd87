#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "collimate/batch/batch.h"

namespace collimate::flow {

// The optimizer updates of one call of a train function: the rows sorted by uid and cut into runs of `rows_per_update`
// (0: all), `epochs` times (1), each later epoch in another order that depends on uids alone; the last update of an
// epoch may be smaller. Inside an update rows are sorted by uid. The two rows of a preference pair stay together, in
// row order. InputError when rows_per_update would cut a pair.
std::vector<Batch> cut_updates(const Batch& rows, const nlohmann::json& parameters);

// 2 when the rows are preference pairs, else 1: what a split must keep together.
int64_t pair_size(const Batch& rows);

}  // namespace collimate::flow
