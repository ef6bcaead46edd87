#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace collimate::flow {

// Cuts units with these costs, in their order, into `parts` runs so that the most costly run costs as little as
// possible. Among equally good cuts it chooses the one that fills the earlier runs. Returns where each run ends:
// [parts], the last one at the number of units. Runs are empty where there are fewer units than parts.
std::vector<int64_t> balanced_ends(std::span<const int64_t> costs, int64_t parts);

}  // namespace collimate::flow
