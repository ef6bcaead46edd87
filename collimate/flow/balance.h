#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace collimate::flow {

// Cuts units of these costs, in their order, into `parts` runs whose most costly one costs as little as any such cut
// allows; of equal ones that which fills the earlier runs. Gives where each run ends: [parts], the last one all units.
// Runs are empty where there are fewer units than parts.
std::vector<int64_t> balanced_ends(std::span<const int64_t> costs, int64_t parts);

}  // namespace collimate::flow
