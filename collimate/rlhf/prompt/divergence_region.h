#pragma once

#include <cstdint>
#include <vector>

// A reward model that is trained on the region in which the answers of a pair diverge (loss/divergence_region.cpp)
// reads rows of equal length.
namespace collimate::rlhf {

// Pads the shorter row of each pair (rows 2i, 2i + 1) with `pad` up to the longer one's length and makes trainable what
// is in the region: from the first token in which they differ on, from the padding on if one is the beginning of the
// other, or the last token if they are equal. Returns how many tokens each row has ahead of its padding.
std::vector<int64_t> pad_pairs(std::vector<std::vector<int32_t>>& ids, std::vector<std::vector<uint8_t>>& trainable,
                               int32_t pad);

}  // namespace collimate::rlhf
