#include "collimate/rlhf/prompt/divergence_region.h"

#include <algorithm>

namespace collimate::rlhf {
namespace {

// Returns where the region of a pair begins.
int64_t divergence_of(const std::vector<int32_t>& chosen, const std::vector<int32_t>& rejected) {
  const int64_t first = std::ranges::mismatch(chosen, rejected).in1 - chosen.begin();
  return std::min(first, std::max(std::ssize(chosen), std::ssize(rejected)) - 1);
}

}  // namespace

std::vector<int64_t> pad_pairs(std::vector<std::vector<int32_t>>& ids, std::vector<std::vector<uint8_t>>& trainable,
                               int32_t pad) {
  std::vector<int64_t> unpadded;
  for (size_t r = 0; r + 1 < ids.size(); r += 2) {
    const int64_t from = divergence_of(ids[r], ids[r + 1]);
    const size_t longest = std::max(ids[r].size(), ids[r + 1].size());
    for (const size_t row : {r, r + 1}) {
      unpadded.push_back(std::ssize(ids[row]));
      ids[row].resize(longest, pad);
      trainable[row].assign(longest, 1);
      std::fill_n(trainable[row].begin(), from, uint8_t{0});
    }
  }
  return unpadded;
}

}  // namespace collimate::rlhf
