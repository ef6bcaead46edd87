#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace collimate::text {

// Finds strings by their beginnings. Nodes lie in breadth-first order, so that a node's children are neighbours.
class Trie {
 public:
  // `keys` are different from each other; empty ones are left out. A key's value is its place among them.
  explicit Trie(std::span<const std::string> keys);

  // Calls `found(size, value)` for every key that `text` begins with, the shortest first.
  template <class Found>
  void prefixes(std::string_view text, Found found) const {
    uint32_t node = 0;
    for (size_t size = 0; size < text.size();) {
      node = child(node, static_cast<unsigned char>(text[size++]));
      if (node == 0) return;
      if (nodes_[node].value >= 0) found(size, nodes_[node].value);
    }
  }

 private:
  struct Node {
    uint32_t first_child = 0;
    uint16_t children = 0;
    unsigned char byte = 0;  // the byte that leads here
    int32_t value = -1;
  };
  uint32_t child(uint32_t node, unsigned char byte) const {
    const Node& parent = nodes_[node];
    if (node == 0) return from_root_[byte];
    for (uint32_t at = parent.first_child; at < parent.first_child + parent.children; ++at)
      if (nodes_[at].byte == byte) return at;
    return 0;
  }
  std::vector<Node> nodes_;  // the root is the first
  std::vector<uint32_t> from_root_ = std::vector<uint32_t>(256);
};

}  // namespace collimate::text
