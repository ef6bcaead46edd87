#pragma once

#include <cstdint>

namespace collimate::tensor {

// Returns the number of the first block of a sequence (KvLayout) that its token at `position` or any later one reads,
// with a window as in attention_forward. Blocks ahead of it may hold anything. Returns 0 without a window.
int64_t first_block_read(int64_t position, int64_t window);

}  // namespace collimate::tensor
