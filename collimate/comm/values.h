#pragma once

#include <cstdint>
#include <vector>

#include "collimate/comm/group.h"

// All ranks of a group call these exchanges of plain values together. The calls block.
namespace collimate::comm {

// Returns the largest of all ranks' values, which must be below 2^24.
int64_t largest(Group& group, int64_t value, double deadline_seconds);

// Brings the `count` values of rank `owner` to the first rank, which returns them. The other ranks return nothing if
// they passed nothing.
std::vector<float> bring_to_first(Group& group, int owner, int64_t count, std::vector<float> values);

}  // namespace collimate::comm
