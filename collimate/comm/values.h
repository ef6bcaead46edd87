#pragma once

#include <cstdint>
#include <vector>

#include "collimate/comm/group.h"

// Exchanges of plain values, which all ranks of a group call together; blocking.
namespace collimate::comm {

// The largest of all ranks' values, which are below 2^24.
int64_t largest(Group& group, int64_t value, double deadline_seconds);

// Rank `owner` has `count` values: the first rank gets them, others that gave none nothing.
std::vector<float> bring_to_first(Group& group, int owner, int64_t count, std::vector<float> values);

}  // namespace collimate::comm
