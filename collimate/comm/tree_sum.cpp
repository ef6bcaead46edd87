#include <algorithm>

#include "collimate/base/error.h"
#include "collimate/comm/group.h"

namespace collimate::comm {
namespace {

constexpr size_t kBlock = 256;

// Computes out[0 … count) = Σ parts[lo … hi)[begin …] by the tree, with count ≤ kBlock.
void sum_block(std::span<const float* const> parts, size_t begin, size_t count, float* out) {
  if (parts.size() == 1) {
    std::copy_n(parts[0] + begin, count, out);
    return;
  }
  if (parts.size() == 2) {
    for (size_t i = 0; i < count; ++i) out[i] = parts[0][begin + i] + parts[1][begin + i];
    return;
  }
  size_t middle = parts.size() / 2;
  float right[kBlock];
  sum_block(parts.first(middle), begin, count, out);
  sum_block(parts.subspan(middle), begin, count, right);
  for (size_t i = 0; i < count; ++i) out[i] += right[i];
}

}  // namespace

void tree_sum(std::span<const float* const> parts, size_t begin, size_t end, float* out) {
  COLLIMATE_CHECK(!parts.empty());
  float block[kBlock];  // `out` may be one of the parts
  for (size_t at = begin; at < end; at += kBlock) {
    size_t count = std::min(kBlock, end - at);
    sum_block(parts, at, count, block);
    std::copy_n(block, count, out + (at - begin));
  }
}

void max_over(std::span<const float* const> parts, size_t begin, size_t end, float* out) {
  for (size_t i = begin; i < end; ++i) {
    float best = parts[0][i];
    for (const float* part : parts) best = std::max(best, part[i]);
    out[i - begin] = best;
  }
}

}  // namespace collimate::comm
