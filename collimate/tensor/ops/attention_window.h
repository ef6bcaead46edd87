#pragma once

#include <cstdint>

namespace collimate::tensor {

// Blocks of a sequence (KvLayout) ahead of this one are read neither by its token at `position` nor by any later one,
// of a window as attention_forward has it, and may hold anything. 0 without a window.
int64_t first_block_read(int64_t position, int64_t window);

}  // namespace collimate::tensor
