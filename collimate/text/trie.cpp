#include "collimate/text/trie.h"

#include <algorithm>
#include <numeric>

namespace collimate::text {
namespace {

// Keys [begin, end) of the sorted order share the first `depth` bytes, which lead to `node`.
struct Range {
  uint32_t node, begin, end, depth;
};

std::vector<uint32_t> sorted_order(std::span<const std::string> keys) {
  std::vector<uint32_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0);
  std::erase_if(order, [&](uint32_t key) { return keys[key].empty(); });
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return keys[a] < keys[b]; });
  return order;
}

}  // namespace

Trie::Trie(std::span<const std::string> keys) : nodes_(1) {
  const std::vector<uint32_t> order = sorted_order(keys);
  std::vector<Range> queue{{0, 0, static_cast<uint32_t>(order.size()), 0}};
  for (size_t next = 0; next < queue.size(); ++next) {
    const Range range = queue[next];
    uint32_t at = range.begin;
    if (at < range.end && keys[order[at]].size() == range.depth)
      nodes_[range.node].value = static_cast<int32_t>(order[at++]);
    nodes_[range.node].first_child = static_cast<uint32_t>(nodes_.size());
    while (at < range.end) {
      const char byte = keys[order[at]][range.depth];
      uint32_t end = at;
      while (end < range.end && keys[order[end]][range.depth] == byte) ++end;
      queue.push_back({static_cast<uint32_t>(nodes_.size()), at, end, range.depth + 1});
      nodes_.push_back({.byte = static_cast<unsigned char>(byte)});
      ++nodes_[range.node].children;
      at = end;
    }
  }
  for (uint32_t at = nodes_[0].first_child; at < nodes_[0].first_child + nodes_[0].children; ++at)
    from_root_[nodes_[at].byte] = at;
}

}  // namespace collimate::text
