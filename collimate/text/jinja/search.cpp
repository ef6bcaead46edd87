#include "collimate/text/jinja/search.h"

#include <algorithm>

namespace collimate::text::jinja {
namespace {

// Returns whether the predicate holds of the node or of one within it.
template <class Predicate>
bool any_node(const Node& node, const Predicate& holds) {
  return holds(node) || std::ranges::any_of(node.children, [&](const Node& n) { return any_node(n, holds); }) ||
         std::ranges::any_of(node.named, [&](const auto& entry) { return any_node(entry.second, holds); });
}

}  // namespace

bool reads(const Node& body, const std::string& variable) {
  return any_node(body, [&](const Node& node) { return node.op == Op::kName && node.text == variable; });
}

bool mentions(const Node& body, const std::string& word) {
  return any_node(body, [&](const Node& node) {
    if (node.op == Op::kValue) return node.value.is_text() && node.value.text() == word;
    return (node.op == Op::kName || node.op == Op::kAttribute) && node.text == word;
  });
}

bool marks(const Node& body) {
  return any_node(body, [](const Node& node) { return node.op == Op::kGeneration; });
}

}  // namespace collimate::text::jinja
